"""Names on the wire: paths, methods, keys, headers, media types, formats and reasons."""

from collections.abc import Iterable
import os

WS_PATH = '/v1/ws'
WS_SUBPROTOCOL = 'seq-harness.1'

# Methods of the websocket binding.
CONNECT = 'connect'
ACT = 'act'
OBSERVE = 'observe'
EPISODE_END = 'episode_end'
PING = 'ping'
METHODS = (CONNECT, ACT, OBSERVE, EPISODE_END, PING)

# Paths of the HTTP binding.
PATH_CONNECT = '/v1/act/connect'
PATH_READY = '/v1/act/ready'
PATH_KEEPALIVE = '/v1/act/keepalive'
PATH_RELEASE = '/v1/act/release'
PATH_LATENCY = '/v1/latency'
PATH_PING = '/ping'
PATH_ACT = '/act'
PATH_OBSERVE = '/observe'
PATH_EPISODE_END = '/act/episode_end'

# Keys of a websocket message.
KEY_ID = 'id'
KEY_METHOD = 'method'
KEY_STATUS = 'status'
KEY_BODY = 'body'

# Keys of bodies.
KEY_INSTANCE = 'instance'
KEY_REQUEST_ID = 'request_id'
KEY_MODEL = 'model'
KEY_EMBODIMENT = 'embodiment'
KEY_EPISODE_ID = 'episode_id'
KEY_SEQ = 'seq'
KEY_INPUTS = 'inputs'
KEY_FRAMES = 'frames'
KEY_SKIPPED = 'skipped'
KEY_THROUGH = 'through'
KEY_SESSION = 'session'
KEY_SEED = 'seed'
KEY_PARAMS = 'params'
KEY_PLAN = 'plan'
KEY_CALL = 'call'
KEY_OUTPUTS = 'outputs'
KEY_PERF = 'perf'
KEY_HANDLER_MS = 'handler_ms'
KEY_WARNINGS = 'warnings'
KEY_OBSERVATION = 'observation'
"""The body key of a version 1 act: a robot-arm observation in place of `inputs`."""
KEY_ACTION_CHUNK = 'action_chunk'
KEY_OBSERVATIONS = 'observations'
KEY_STEPS = 'steps'

KEY_RUNNING = 'running'
KEY_ANSWERED = 'answered'
KEY_FOR_S = 'for_s'
"""What the answer to a ping tells of an act."""

KEY_END = 'end'
"""A policy's own reason to end the episode, in its answer or in a row."""

# Keys of `plan`, for chunking in real time.
PLAN_PREFIX = 'prefix'
PLAN_DELAY_ROWS = 'delay_rows'
PLAN_EXECUTED_ROWS = 'executed_rows'

# Keys of an error's `details`.
DETAIL_REASON = 'reason'
DETAIL_FROM = 'from'
DETAIL_ETA_S = 'eta_s'
DETAIL_SIZES = 'sizes'
DETAIL_EXCEPTION = 'exception'
DETAIL_QUEUE_POSITION = 'queue_position'

# Reasons.
FRAMES_MISSING = 'frames_missing'
FRAMES_OVER_LIMIT = 'frames_over_limit'
EPISODE_LOST = 'episode_lost'
DRAINING = 'draining'
NO_PLACE = 'no_place'
GPU_OUT_OF_MEMORY = 'gpu_out_of_memory'
HOST_OUT_OF_MEMORY = 'host_out_of_memory'
CRASHED = 'crashed'
HUNG = 'hung'
BATCH_FAILED = 'batch_failed'
COPY_LOST_REASONS = frozenset(
    {GPU_OUT_OF_MEMORY, HOST_OUT_OF_MEMORY, CRASHED, HUNG, BATCH_FAILED},
)
"""Reasons after which the episode's state on the worker is gone."""

# Headers.
HEADER_AUTHORIZATION = 'Authorization'
HEADER_PROXY_AUTHORIZATION = 'Proxy-Authorization'
BEARER = 'Bearer '
HEADER_CONTENT_TYPE = 'Content-Type'
HEADER_CONTENT_LENGTH = 'Content-Length'
HEADER_ACCEPT = 'Accept'
HEADER_SESSION = 'X-Seq-Session'
HEADER_REQUEST_ID = 'X-Seq-Request-Id'
HEADER_SWITCHED = 'X-Seq-Switched'
HEADER_FORMATS = 'X-Seq-Act-Formats'
HEADER_INSTANCE = 'X-Seq-Instance'
HEADER_RETRY_AFTER = 'Retry-After'
HEADER_ORIGIN = 'Origin'

# The wire of openpi's policy server.
OPENPI_PATH = '/'
OPENPI_PATH_HEALTH = '/healthz'
OPENPI_HEALTHY = 'OK\n'
OPENPI_API_KEY = 'Api-Key '
OPENPI_ACTIONS = 'actions'
OPENPI_TIMING = 'server_timing'
OPENPI_INFER_MS = 'infer_ms'
OPENPI_PREV_TOTAL_MS = 'prev_total_ms'

# Media types.
JSON_TYPE = 'application/json'
MSGPACK_TYPE = 'application/x-seq-msgpack'
FRAMES_TYPE = 'application/x-seq-frames'

# Formats that a worker announces.
FORMAT_MSGPACK = 'x-seq-msgpack/1'
FORMAT_OBSERVE = 'x-seq-observe/1'
FORMAT_CALL = 'x-seq-call/1'
FORMAT_ZSTD = 'x-seq-zstd/1'
FORMAT_ACT_ONCE = 'x-seq-act-once/1'
FORMAT_RESUME = 'x-seq-resume/1'
FORMAT_VIDEO_GAP = 'x-seq-video-gap/1'
FORMAT_FRAMES = 'x-seq-frames/1'


def write_formats(formats: Iterable[str]) -> str:
    """Write the value of the formats header."""
    return ', '.join(formats)


def read_formats(header: str | None) -> frozenset[str]:
    """Read the formats header: comma-separated, in any case, blanks around an item dropped."""
    items = (item.strip().lower() for item in (header or '').split(','))
    return frozenset(item for item in items if item)


def new_request_id() -> str:
    """Make the id of one act, to be held over every retry of it."""
    return f'r-{os.urandom(4).hex()}'
