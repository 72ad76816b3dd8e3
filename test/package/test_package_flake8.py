"""The code holds to ROS 2's style."""

from pathlib import Path

import pytest
from support.sources import EVERYWHERE, ROOT

CONFIG = Path(__file__).with_name('ament_flake8.ini')

ament_flake8 = pytest.importorskip('ament_flake8.main')


@pytest.mark.flake8
@pytest.mark.linter
def test_flake8() -> None:
    status, errors = ament_flake8.main_with_errors(
        argv=['--config', str(CONFIG)]
        + [str(ROOT / place) for place in EVERYWHERE if (ROOT / place).exists()]
    )
    assert status == 0, '\n'.join(errors)
