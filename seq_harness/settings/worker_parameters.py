"""The parameters of the way to the worker, and of what every act hands to the policy."""

from __future__ import annotations

from seq_harness.settings.parameter import Kind, Parameter

WORKER = (
    Parameter(
        'worker_url', Kind.STRING, 'ws://127.0.0.1:8765', 'Where the worker that serves the '
        'policy listens; the scheme chooses the wire. Read-only once configured.',
    ),
    Parameter(
        'worker_token_file', Kind.STRING, '', 'A file that holds the bearer token of the worker '
        'or of the gateway; empty for none.',
    ),
    Parameter(
        'gateway_url', Kind.STRING, '', 'A gateway that is asked where the worker is, in place of '
        'worker_url: http:// or https://; empty for none.',
    ),
    Parameter(
        'model', Kind.STRING, '', "Which of the worker's or of the gateway's policies to drive; "
        'empty where there is one.',
    ),
    Parameter(
        'embodiment', Kind.STRING, '', "Which of the policy's bodies this robot is; empty where "
        'it declares none.',
    ),
    Parameter(
        'seed', Kind.INTEGER, -1, 'The seed that every act hands to the policy; -1 for none.',
        -1, 2**63 - 1,
    ),
    Parameter(
        'policy_params', Kind.STRING, '', 'Values of the inference parameters that the policy '
        'declares, as a JSON object such as {"steps": 5}; empty for its defaults.',
    ),
    Parameter(
        'tls_fingerprint', Kind.STRING, '', 'The sha256 in hex of the one certificate that is '
        'trusted; empty to trust by authorities.',
    ),
    Parameter(
        'tls_ca_file', Kind.STRING, '', 'A file of the authorities that are trusted for the '
        "worker's certificate; empty for the system's.",
    ),
    Parameter(
        'allow_plaintext', Kind.BOOL, False, 'Send the token over an unencrypted connection to '
        'another machine.',
    ),
    Parameter(
        'connect_timeout_s', Kind.DOUBLE, 120.0, 'How long configuring waits for the worker to '
        'answer and to load its policy, in seconds.', 0.1, 86400.0,
    ),
    Parameter(
        'act_timeout_s', Kind.DOUBLE, 30.0, 'How long one act may take before its connection is '
        'closed, in seconds.', 0.05, 3600.0,
    ),
    Parameter(
        'max_request_age_s', Kind.DOUBLE, 10.0, 'An act is repeated only while its observation is '
        'younger than this, in seconds; at most act_timeout_s.', 0.01, 3600.0,
    ),
    Parameter(
        'reconnect_s', Kind.DOUBLE, 5.0, 'How long a lost worker is looked for before the episode '
        'ends with worker_lost, in seconds.', 0.0, 3600.0,
    ),
)  # fmt: skip
