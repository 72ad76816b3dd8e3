"""The docstrings hold to ROS 2's style."""

import logging

import pytest
from support.sources import EVERYWHERE, ROOT

ament_pep257 = pytest.importorskip('ament_pep257.main')


@pytest.mark.linter
@pytest.mark.pep257
def test_pep257() -> None:
    logging.getLogger('pydocstyle.utils').setLevel(logging.WARNING)  # It names every file.
    status = ament_pep257.main(
        argv=[str(ROOT / place) for place in EVERYWHERE if (ROOT / place).exists()]
    )
    assert status == 0, 'the errors are printed above'
