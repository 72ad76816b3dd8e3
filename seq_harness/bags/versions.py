"""What the bits of a setpoint may depend on beside this code."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
import os
import platform

import numpy as np


def versions() -> dict[str, str]:
    """Return what runs here: ours, Python, numpy, the machine, and the distribution of ROS."""
    try:
        ours = version('seq_harness')
    except PackageNotFoundError:
        ours = 'unknown'
    return {
        'seq_harness': ours,
        'python': platform.python_version(),
        'numpy': np.__version__,
        'machine': f'{platform.system()} {platform.machine()}',
        'ros_distro': os.environ.get('ROS_DISTRO', ''),
    }
