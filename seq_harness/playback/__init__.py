"""Sessions, chunks and the player: pure code on integer nanoseconds."""
