"""What was captured of a public client on the wire."""

import numpy as np
from seq_harness.contract import pack, unpack


def test_the_captured_post_of_a_public_client_is_written_and_read() -> None:
    observation = {'i': 0, 'state': np.array([0, 1, 2], 'f4')}
    body = {
        'episode_id': 'ep-1',
        'frames': [{'seq': 0, 'inputs': observation}],
        'skipped': [],
    }
    captured = bytes.fromhex(
        '83aa657069736f64655f6964a465702d31'
        'a66672616d65739182a373657100a6696e70757473'
        '82a16900a5737461746585c4026e64c3c40474797065a33c6634c4046b696e64c400'
        'c40573686170659103c40464617461c40c000000000000803f00000040'
        'a7736b697070656490'
    )
    assert pack(body) == captured
    assert unpack(captured)['frames'][0]['inputs']['state'].tolist() == [0, 1, 2]
