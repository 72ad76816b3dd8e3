"""What a page looks like, and the script that draws it and moves it to a moment."""

POLICY = (
    "default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline' 'unsafe-eval'; worker-src blob:"
)
"""The page's content security policy: nothing is fetched, whatever stands in it."""

CSS = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 1500px;
  padding: 12px 20px 60px; color: #1b1f24; background: #fff; }
h1 { font-size: 20px; margin: 6px 0; overflow-wrap: anywhere; }
h2 { font-size: 16px; margin: 26px 0 6px; }
p { margin: 4px 0; }
.note { color: #5b6470; max-width: 100ch; }
.reason { font-weight: 600; padding: 1px 6px; border-radius: 3px; background: #eef2f7; }
.bad { background: #fbe3e3; color: #8f1414; }
.missing { border-left: 4px solid #c9a227; padding: 4px 10px; background: #fdf8e8;
  margin: 8px 0; }
.runs { display: grid; grid-template-columns: repeat(auto-fit, minmax(420px, 1fr)); gap: 18px; }
table { border-collapse: collapse; margin: 4px 0; }
th, td { text-align: left; padding: 2px 12px 2px 0; vertical-align: top;
  border-bottom: 1px solid #eceef1; overflow-wrap: anywhere; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums;
  white-space: nowrap; overflow-wrap: normal; }
a { color: #1f5fbf; text-decoration: none; cursor: pointer; white-space: nowrap; }
a:hover { text-decoration: underline; }
.strip { display: flex; overflow-x: auto; gap: 4px; padding-bottom: 6px; }
.strip figure { margin: 0; flex: none; text-align: center; font-size: 11px; color: #5b6470; }
.strip img { height: 110px; display: block; image-rendering: auto; }
.events { max-height: 420px; overflow-y: auto; }
button { font: inherit; padding: 1px 10px; }
"""

SCRIPT = """
(function () {
  'use strict';
  var page = JSON.parse(document.getElementById('page-data').textContent);
  var kinds = {f4: Float32Array, f8: Float64Array};
  var arrays = page.arrays.map(function (packed) {
    var text = atob(packed.data), bytes = new Uint8Array(text.length);
    for (var i = 0; i < text.length; i++) { bytes[i] = text.charCodeAt(i); }
    return new kinds[packed.kind](bytes.buffer);
  });
  var traces = page.figure.data;
  traces.forEach(function (trace) {
    ['x', 'y', 'customdata'].forEach(function (key) {
      if (trace[key]) { trace[key] = arrays[trace[key].array]; }
    });
  });
  var spans = {};
  Object.keys(page.figure.layout).forEach(function (name) {
    if (page.figure.layout[name].range) { spans[name] = page.figure.layout[name].range.slice(); }
  });
  var plot = document.getElementById('plot');
  Plotly.newPlot(plot, traces, page.figure.layout, {responsive: true, displaylogo: false});

  // The first index whose time is not before t; gaps between chunks (NaN) are looked over.
  function scan(trace, from, to, each) {
    var x = trace.x, y = trace.y, last = NaN;
    for (var i = 0; i < x.length; i++) {
      if (x[i] <= from) { last = y[i]; }
      if (x[i] >= from && x[i] <= to) { each(y[i]); }
    }
    if (trace.mode === 'lines') { each(last); }
  }

  function zoom(from, to) {
    var change = {'xaxis.range': [from, to]}, spans = {};
    plot.data.forEach(function (trace) {
      // Chunks as predicted may lie far off: what was commanded says what to show.
      if (trace.visible === 'legendonly' || !trace.x || trace.hoverinfo === 'skip') { return; }
      var span = spans[trace.yaxis] || (spans[trace.yaxis] = [Infinity, -Infinity]);
      scan(trace, from, to, function (value) {
        if (value < span[0]) { span[0] = value; }
        if (value > span[1]) { span[1] = value; }
      });
    });
    Object.keys(spans).forEach(function (name) {
      var axis = 'yaxis' + name.slice(1), span = spans[name];
      if (page.figure.layout[axis].fixedrange || span[0] > span[1]) { return; }
      var margin = 0.2 * (span[1] - span[0]) || 0.01;
      change[axis + '.range'] = [span[0] - margin, span[1] + margin];
    });
    Plotly.relayout(plot, change);
  }

  function whole() {
    var change = {'xaxis.autorange': true};
    Object.keys(page.figure.layout).forEach(function (name) {
      if (name.indexOf('yaxis') === 0 && !page.figure.layout[name].fixedrange) {
        if (spans[name]) { change[name + '.range'] = spans[name]; }
        else { change[name + '.autorange'] = true; }
      }
    });
    Plotly.relayout(plot, change);
  }

  // page.html#at=12.3 opens there.
  var named = /^#at=([0-9.]+)$/.exec(location.hash);
  if (named) { zoom(Number(named[1]) - 1, Number(named[1]) + 1); }

  document.addEventListener('click', function (event) {
    var link = event.target.closest('[data-at]');
    if (link) {
      var at = Number(link.dataset.at), around = Number(link.dataset.around || 1);
      zoom(at - around, at + around);
      plot.scrollIntoView({behavior: 'smooth'});
    } else if (event.target.id === 'whole') {
      whole();
    }
  });
})();
"""
