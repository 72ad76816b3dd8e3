# shellcheck shell=bash
# What the scripts beside it share. They source it, then call
#   offer_help "$@"          which prints the top of the script where --help is asked for
#   enter_environment "$@"   which makes the environment where it is missing, exports it,
#                            and leaves the arguments after its own in ARGUMENTS
#   enter_servers_environment
#                            which makes that of the public policy servers, and names its Python
#   run_guarded COMMAND ...  which runs a command and leaves nothing of it behind

set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
readonly root

# Progress goes to standard error: a command's own output stays clean.
say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
fail() {
  say "$*"
  exit 1
}

# Print the text at the top of the script, and what its more_help says, where its first words ask
# for help; then end.
offer_help() {
  local word
  for word in "$@"; do
    case $word in
      -h | --help)
        sed -n '2,/^[^#]/{/^# shellcheck/q; s/^# \{0,1\}//p}' "$0"
        ! declare -F more_help >/dev/null || more_help
        exit
        ;;
      --distro* | jazzy | kilted) ;;
      *) return 0 ;;
    esac
  done
}

# --- The environment -------------------------------------------------------------------------

# Parse --distro, find out which ROS 2 there is, and export what a command needs to run in it.
enter_environment() {
  local distro=
  while [[ ${1:-} == --distro* ]]; do
    case $1 in
      --distro=*) distro=${1#*=} && shift ;;
      --distro) distro=${2:-} && shift $(($# < 2 ? 1 : 2)) ;;
      *) fail "expected --distro jazzy or --distro kilted, got $1" ;;
    esac
    [[ -n $distro ]] || fail 'expected a name after --distro: jazzy or kilted'
  done
  # shellcheck disable=SC2034  # read by the scripts
  ARGUMENTS=("$@")

  [[ ${SEQ_HARNESS_ENV:-} == *-sourced ]] || distro=${distro:-${SEQ_HARNESS_ENV+${SEQ_HARNESS_ENV##*/}}}
  leave_own_environment
  mkdir -p "$root/.env"
  # Several checkouts may share one .env by links: it goes by its own place.
  environments=$(cd -- "$root/.env" && pwd -P)
  touch "$environments/COLCON_IGNORE"
  if [[ -n ${ROS_DISTRO:-} && -n ${AMENT_PREFIX_PATH:-} ]]; then
    enter_sourced_environment "$distro"
  else
    enter_own_environment "${distro:-jazzy}"
  fi
}

# Take out what an outer script's environment put in, so that a script may call a script.
leave_own_environment() {
  [[ -n ${SEQ_HARNESS_ENV:-} ]] || return 0
  if [[ ${SEQ_HARNESS_ENV##*/} != *-sourced ]]; then
    unset ROS_DISTRO AMENT_PREFIX_PATH _ROS_WHEELS_BOOTSTRAP_COMPLETE
  fi
  local variable
  for variable in PATH PYTHONPATH LD_LIBRARY_PATH AMENT_PREFIX_PATH; do
    if [[ -n ${!variable:-} ]]; then
      export "$variable=$(without_prefix "$SEQ_HARNESS_ENV/" "${!variable}")"
    fi
  done
  unset SEQ_HARNESS_ENV VIRTUAL_ENV
}

# Print a list of paths without those that start with $1.
without_prefix() {
  local prefix=$1 kept='' path
  local -a paths
  IFS=: read -r -a paths <<<"$2"
  for path in "${paths[@]}"; do
    [[ $path/ == "$prefix"* ]] || kept+=${kept:+:}$path
  done
  printf '%s' "$kept"
}

# ROS 2 from wheels, in an environment of this checkout's own that never leaves the machine.
enter_own_environment() {
  local distro=$1
  [[ $distro == jazzy || $distro == kilted ]] ||
    fail "expected --distro jazzy or --distro kilted, got $distro"
  environment=$environments/$distro
  make_virtual_environment "$distro" "ROS 2 $distro" "$for_wheels"

  local library libraries=
  for library in "$environment"/lib/python3.*/site-packages/ros_*.libs "$environment/lib"; do
    libraries+=${libraries:+:}$library
  done
  export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export _ROS_WHEELS_BOOTSTRAP_COMPLETE=1 # The libraries are on the path: no second start to add them.
  export AMENT_PREFIX_PATH=$environment
  export ROS_DISTRO=$distro ROS_VERSION=2 ROS_PYTHON_VERSION=3 RMW_IMPLEMENTATION=rmw_fastrtps_cpp
  export ROS_LOG_DIR=$environments/log
  unset ROS_AUTOMATIC_DISCOVERY_RANGE ROS_LOCALHOST_ONLY ROS_STATIC_PEERS ROS_DISCOVERY_SERVER
  unset FASTRTPS_DEFAULT_PROFILES_FILE FASTDDS_DEFAULT_PROFILES_FILE
  stay_on_this_machine
  add_package_to_environment
  sweep_shared_memory
  choose_domain
}

# Let Fast DDS use shared memory alone, with room for camera frames, and keep them cheap.
stay_on_this_machine() {
  local profiles=FASTDDS_DEFAULT_PROFILES_FILE
  # Its name before Kilted.
  [[ ! $ROS_DISTRO =~ ^(humble|iron|jazzy)$ ]] || profiles=FASTRTPS_DEFAULT_PROFILES_FILE
  export "$profiles=$root/config/fastdds_shared_memory.xml"
  # With LOCALHOST, a process that takes images and publishes loses most of them.
  export ROS_AUTOMATIC_DISCOVERY_RANGE=SYSTEM_DEFAULT
  # Freed frames stay with the process: their page faults would cost more than half of a take.
  export MALLOC_MMAP_THRESHOLD_=268435456 MALLOC_TRIM_THRESHOLD_=536870912 MALLOC_TOP_PAD_=33554432
}

# The ROS 2 that the user sourced, with a virtual environment for what it lacks.
enter_sourced_environment() {
  local asked=$1
  [[ -z $asked || $asked == "$ROS_DISTRO" ]] ||
    fail "expected --distro $ROS_DISTRO, which is sourced, got $asked: use a shell that sources no ROS 2"
  environment=$environments/$ROS_DISTRO-sourced
  make_virtual_environment sourced "what the sourced ROS 2 $ROS_DISTRO lacks" \
    "$for_wheels and importlib.util.find_spec('rclpy')" --system-site-packages
  add_package_to_environment
}

# For what brings all its nodes along: keep it off the network and off the user's own graph, unless
# the user said how this shell's nodes meet. A demo must never reach a robot that listens.
keep_to_itself() {
  local variable
  for variable in ROS_DOMAIN_ID ROS_AUTOMATIC_DISCOVERY_RANGE ROS_LOCALHOST_ONLY ROS_STATIC_PEERS \
    ROS_DISCOVERY_SERVER FASTRTPS_DEFAULT_PROFILES_FILE FASTDDS_DEFAULT_PROFILES_FILE \
    FASTDDS_BUILTIN_TRANSPORTS; do
    [[ -z ${!variable:-} ]] || return 0
  done
  [[ ${RMW_IMPLEMENTATION:-rmw_fastrtps_cpp} != rmw_fastrtps_cpp ]] || stay_on_this_machine
  choose_domain
}

# The public policy servers that tests meet, apart from every ROS 2: they need an older numpy.
enter_servers_environment() {
  local environment=$environments/servers needs='(3, 11) <= sys.version_info < (3, 13)'
  unset SEQ_HARNESS_SERVERS_PYTHON
  if ! find_python "$needs" >/dev/null; then
    say 'found no Python 3.11 or 3.12, which the public policy servers need: their tests are skipped'
    return
  fi
  make_virtual_environment servers 'the public policy servers' "$needs"
  export SEQ_HARNESS_SERVERS_PYTHON=$environment/bin/python
}

# Make $environment, which holds $2, from scripts/requirements-$1.txt and a Python for which $3
# holds, unless it is whole and of this very list; and hold it, as long as this process and what it
# starts run: nobody deletes it under them.
make_virtual_environment() {
  local list=$root/scripts/requirements-$1.txt title=$2 needs=$3 wanted
  shift 3
  # A virtual environment knows its place: one that was moved is made anew.
  wanted=${environment%/.env/*}$'\n'$(<"$list")
  exec {using}>"$environment.use"
  until flock --shared "$using" && is_stamped "$wanted"; do
    flock --unlock "$using"
    exec {lock}>"$environment.lock"
    flock --nonblock "$lock" || {
      say "waiting for another set-up of $environment"
      flock "$lock"
    }
    is_stamped "$wanted" || set_up "$list" "$title" "$needs" "$wanted" "$@"
    exec {lock}>&-
  done
}

# Whether $environment was finished for exactly what $1 says.
is_stamped() {
  [[ -x $environment/bin/python && -f $environment/stamp && $(<"$environment/stamp") == "$1" ]]
}

# Bring $environment to the list $1, for which the stamp is $4, with what more venv takes.
set_up() {
  local list=$1 title=$2 needs=$3 wanted=$4 python log=$environment.log
  shift 4
  if lacks_packages_alone "$wanted"; then
    say "adding to $title in $environment"
    install_list "$list" >"$log" 2>&1 || set_up_failed "$log"
  else
    python=$(find_python "$needs") ||
      fail "found no Python from 3.10 to 3.14 with venv: install one (Debian and Ubuntu: apt install python3 python3-venv), or name it in PYTHON"
    flock --timeout 3 --exclusive "$using" ||
      fail "expected $environment to be made of $list, and it is made of another list and in use: end what runs in it, or give this checkout a .env of its own"
    say "setting up $title in $environment (once, about a minute)"
    rm -rf "$environment"
    if ! { "$python" -m venv "$@" "$environment" && install_list "$list"; } >"$log" 2>&1; then
      rm -rf "$environment"
      set_up_failed "$log"
    fi
    flock --unlock "$using"
  fi
  printf '%s' "$wanted" >"$environment/stamp.part"
  mv "$environment/stamp.part" "$environment/stamp"
}

set_up_failed() {
  tail -n 15 "$1" >&2
  fail "the set-up failed; its log is $1. It needs a package index that pip reaches: try again once it does"
}

# Whether $environment was finished, and all that its stamp names stands in $1 too.
lacks_packages_alone() {
  [[ -x $environment/bin/python && -f $environment/stamp ]] || return
  [[ $(head -n 1 "$environment/stamp") == "$(head -n 1 <<<"$1")" ]] || return
  ! grep -vxqFf <(printf '%s\n' "$1") "$environment/stamp"
}

install_list() {
  local -a clean=(env -u PYTHONPATH -u LD_LIBRARY_PATH -u _ROS_WHEELS_BOOTSTRAP_COMPLETE)
  [[ ${environment##*/} != *-sourced ]] || clean=()
  "${clean[@]}" "$environment/bin/python" -m pip install --disable-pip-version-check \
    --no-input --prefer-binary -r "$1"
}

readonly for_wheels='(3, 10) <= sys.version_info < (3, 15)' # What the wheels are made for.

# Print a Python that can make an environment and for which $1 holds; fail where there is none.
find_python() {
  local candidate
  for candidate in ${PYTHON:+"$PYTHON"} python3 python3.12 python3.11 python3.13 python3.14 \
    python3.10 /usr/bin/python3; do
    if "$candidate" -c "import ensurepip, importlib.util, sys, venv; sys.exit(not ($1))" \
      >/dev/null 2>&1; then
      printf '%s' "$candidate"
      return
    fi
  done
  return 1
}

# --- The package in the environment ----------------------------------------------------------

# Put the built package on the paths: its prefix, its executables, and the sources themselves.
add_package_to_environment() {
  local installed folder
  # Of this checkout alone, beside those of others that share the environment.
  package=$environment/package-$(cksum <<<"$root" | cut -d ' ' -f 1)
  installed=$package/install
  for folder in "$environment"/lib/python3.*; do :; done
  export VIRTUAL_ENV=$environment SEQ_HARNESS_ENV=$environment
  export PATH=$environment/bin:$PATH
  build_package "${folder##*/}"
  export PATH=$environment/bin:$installed/lib/seq_harness:${PATH#*:}
  export AMENT_PREFIX_PATH=$installed${AMENT_PREFIX_PATH:+:$AMENT_PREFIX_PATH}
  # The sources come first, by a folder that holds them alone: an edit takes effect at once.
  export PYTHONPATH=$package/src:$installed/lib/${folder##*/}/site-packages${PYTHONPATH:+:$PYTHONPATH}
}

# Take the package off the paths again, for what installs it elsewhere.
leave_package() {
  local variable
  for variable in PATH PYTHONPATH AMENT_PREFIX_PATH; do
    export "$variable=$(without_prefix "$package/install/" "${!variable}")"
  done
  PYTHONPATH=$(without_prefix "$package/src/" "$PYTHONPATH")
}

# Build the package into $package/install when what is copied there has changed.
build_package() {
  local wanted log=$package/build.log stage
  wanted=$(cd "$root" && find setup.py setup.cfg package.xml resource launch config -type f \
    -printf '%p %T@\n' | sort)
  [[ -f $package/built && $(<"$package/built") == "$wanted" ]] && return
  mkdir -p "$package"
  exec {lock}>"$package/lock"
  flock "$lock"
  if [[ ! -f $package/built || $(<"$package/built") != "$wanted" ]]; then
    stage=$(mktemp -d "$package/stage.XXXXXX")
    if ! colcon --log-base "$stage/log" build --merge-install --paths "$root" \
      --build-base "$stage/build" --install-base "$stage/install" >"$log" 2>&1 </dev/null; then
      tail -n 30 "$log" >&2
      fail "the package does not build; the whole log is $log"
    fi
    mkdir -p "$package/src"
    ln -sfn "$root/seq_harness" "$package/src/seq_harness"
    # Whoever runs now keeps finding a whole package: the new one takes the name in one step.
    ln -s "${stage##*/}/install" "$stage/link"
    mv -T "$stage/link" "$package/install"
    printf '%s' "$wanted" >"$package/built.part"
    mv "$package/built.part" "$package/built"
    find "$package" -maxdepth 1 -name 'stage.*' ! -name "${stage##*/}" -exec rm -rf {} +
  fi
  exec {lock}>&-
}

# Take a ROS domain that no other run on this machine has, for as long as this process lives.
choose_domain() {
  [[ -z ${ROS_DOMAIN_ID:-} ]] || return 0
  local folder=${TMPDIR:-/tmp}/ros_domains-$UID attempt id
  mkdir -p "$folder"
  for ((attempt = 0; attempt < 101; attempt++)); do
    id=$((($$ + attempt) % 101 + 1))
    exec {domain_lock}>"$folder/$id"
    if flock --nonblock "$domain_lock" && ! domain_has_ports "$id"; then
      export ROS_DOMAIN_ID=$id
      return
    fi
    exec {domain_lock}>&-
  done
  fail 'every ROS domain from 1 to 101 is in use on this machine: set ROS_DOMAIN_ID'
}

# Whether a participant of domain $1 has a port: RTPS counts them from 7400 + 250 * domain.
domain_has_ports() {
  local port
  for port in /dev/shm/fast*_port[0-9]*; do
    port=${port##*port}
    [[ $port == *[!0-9]* ]] || ((port < 7400 || (port - 7400) / 250 != $1)) || return 0
  done
  return 1
}

# --- What a run leaves -----------------------------------------------------------------------

# Start the script again with Ctrl-C's signal in force, where its caller had it ignored, as a shell
# does for what it starts with &: a shell cannot trap what was ignored when it started.
heed_interrupts() {
  local ignored
  ignored=$(sed -n 's/^SigIgn:\t//p' "/proc/$$/status")
  (((0x$ignored >> 1) % 2 == 0)) || exec env --default-signal=INT "$0" "$@"
}

# Remove the shared-memory files of processes that were killed (Kilted names them fastdds_*, Jazzy
# fastrtps_*). A living process holds a lock on each of its own from the moment it makes it: one
# second is ample. Where the lock itself is gone, the file lives as long as a process maps it.
sweep_shared_memory() {
  local file free mapped=unread
  while IFS= read -r file; do
    if [[ $file == *_[es]l ]]; then
      { exec {free}<"$file"; } 2>/dev/null || continue
      ! flock --nonblock "$free" || remove_segment "${file%_?l}"
      exec {free}<&-
    elif [[ ! -e ${file}_el && ! -e ${file}_sl ]]; then
      [[ $mapped != unread ]] || mapped=$(cat /proc/[0-9]*/maps 2>/dev/null || true)
      [[ $mapped == *"$file"* ]] || remove_segment "$file"
    fi
  done < <(segments ! -newermt '-1 second')
}

# List the shared-memory files of this user for which what is given to find holds.
segments() {
  find /dev/shm -maxdepth 1 -user "$UID" \( -name 'fastrtps_*' -o -name 'fastdds_*' \) "$@" 2>/dev/null
}

remove_segment() { rm -f "$1" "$1"_[es]l "/dev/shm/sem.${1##*/}_mutex"; }

# Run a command in a process group of its own, pass it the signals that this script gets, and
# leave neither a process nor a shared-memory file of it. Returns the command's status.
run_guarded() {
  local mark=SEQ_HARNESS_RUN_${BASHPID}_$RANDOM signal status=0 traced=''
  [[ ! -t 0 ]] || exec </dev/null # A process group in the background may not read the terminal.
  compgen -G '/dev/shm/lttng-ust-wait-*' >/dev/null || traced=no
  child='' stopping=''
  for signal in INT TERM HUP; do
    # shellcheck disable=SC2064  # each trap passes on its own signal
    trap "pass_on $signal" "$signal"
  done
  set -m
  (
    export "$mark=1"
    "$@"
  ) &
  child=$!
  set +m
  wait_for_child || status=$?
  if [[ -n $stopping ]]; then
    within 15 child_is_gone || kill -KILL -- "-$child" 2>/dev/null || true
    status=0
    wait_for_child || status=$?
  fi
  end_marked "$mark"
  trap - INT TERM HUP
  [[ -z $traced ]] || rm -f /dev/shm/lttng-ust-wait-*
  [[ -z $(segments -newermt '-1 second') ]] || sleep 1.1 # Until what was made last counts as left.
  sweep_shared_memory
  return "$status"
}

# Run functions at once, each in a process group of its own, and pass them the signals that this
# script gets, which ends with them. Each runs its commands under guard.
side_by_side() {
  local function signal stopped=''
  local -a running=()
  set -m
  for function in "$@"; do
    "$function" &
    running+=($!)
  done
  set +m
  for signal in INT TERM HUP; do
    # shellcheck disable=SC2064  # each trap passes on its own signal
    trap "stopped=$signal; kill -$signal ${running[*]} 2>/dev/null || true" "$signal"
  done
  for child in "${running[@]}"; do
    while child_runs; do wait_for_child || true; done
  done
  trap - INT TERM HUP
  [[ -z $stopped ]] || exit $((128 + $(kill -l "$stopped")))
}

pass_on() {
  stopping=$1
  [[ -z $child ]] || kill "-$1" -- "-$child" 2>/dev/null || true
}

# Without the shell's own line about a child that a signal ended: the status says it.
wait_for_child() { { wait "$child"; } 2>/dev/null; }

child_runs() { kill -0 "$child" 2>/dev/null; }

child_is_gone() { ! child_runs; }

# End every process that has the variable $1 in its environment: it may have left the group.
end_marked() {
  local signal
  for signal in '' TERM KILL; do
    if [[ -n $signal ]]; then
      # shellcheck disable=SC2046  # one word a process
      kill "-$signal" $(marked "$1") 2>/dev/null || true
    fi
    within 3 none_is_marked "$1" && return
  done
}

marked() { grep -lzx -- "$1=1" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3 || true; }

none_is_marked() { [[ -z $(marked "$1") ]]; }

# Wait up to $1 seconds until a command succeeds.
within() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < deadline)) || return 1
    sleep 0.05
  done
}
