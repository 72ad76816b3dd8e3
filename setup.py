from pathlib import Path

from setuptools import find_packages, setup

package_name = 'seq_harness'

SHARED = ('.json', '.py', '.xml', '.yaml')
EXECUTABLES = ('harness', 'worker', 'sim_arm', 'preflight', 'watchdog')

# Every entry has its reason in docs/dependencies.md, and its rosdep key in package.xml.
WORKER = ['aiohttp>=3.14.1']
BAGS = [
    'rosbags>=0.11.7', 'mcap>=1.5', 'lz4>=3.1', 'zstandard>=0.17', 'PyYAML>=5.4', 'tqdm>=4.60',
]  # fmt: skip
REPORT = ['plotly>=5.15']
SIM = ['matplotlib>=3.5', 'tqdm>=4.60']
TEST = ['pytest<8.4', 'hypothesis']
DEV = ['mypy', 'ruff', 'types-PyYAML', 'types-setuptools', 'types-tqdm']


def shared_files(folder: str) -> list[tuple[str, list[str]]]:
    """List what is installed to share/, folder by folder, as data_files takes it."""
    by_folder: dict[Path, list[str]] = {}
    for path in sorted(Path(folder).rglob('*')):
        if path.is_file() and path.suffix in SHARED:
            by_folder.setdefault(path.parent, []).append(str(path))
    return [(f'share/{package_name}/{place}', files) for place, files in by_folder.items()]


setup(
    name=package_name,
    version='0.1.0',
    packages=find_packages(include=[package_name, f'{package_name}.*']),
    package_data={package_name: ['py.typed']},
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{package_name}']),
        (f'share/{package_name}', ['package.xml']),
        # What ros2 run finds. A script of its own on everyone's PATH has only seq-harness.
        (
            f'lib/{package_name}',
            [f'resource/executables/{name}' for name in EXECUTABLES],
        ),
        *shared_files('launch'),
        *shared_files('config'),
    ],
    python_requires='>=3.10',
    install_requires=[
        'numpy>=1.26',
        'pydantic>=2.5',
        'websockets>=15.0',
        'msgpack>=1.0.3',
        'Pillow>=9.1',
        'typing-extensions>=4.6',
    ],
    extras_require={
        'worker': WORKER,
        'bags': BAGS,
        'sim': SIM,
        'report': REPORT,
        'test': TEST,
        'dev': [*WORKER, *BAGS, *SIM, *REPORT, *TEST, *DEV],
    },
    zip_safe=True,
    maintainer='seq_harness maintainers',
    maintainer_email='maintainers@seq-harness.example',
    description='Streams observations to a policy worker and plays its chunks as setpoints.',
    license='Apache-2.0',
    entry_points={'console_scripts': ['seq-harness = seq_harness.cli.main:main']},
)
