"""The code holds to ROS 2's style."""

import pytest
from support.sources import EVERYWHERE, ROOT

ament_flake8 = pytest.importorskip('ament_flake8.main')


@pytest.mark.flake8
@pytest.mark.linter
def test_flake8() -> None:
    status, errors = ament_flake8.main_with_errors(
        argv=[str(ROOT / place) for place in EVERYWHERE if (ROOT / place).exists()]
    )
    assert status == 0, '\n'.join(errors)
