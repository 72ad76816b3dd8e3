"""The robot's side of each wire, and the runtime that keeps Answers."""
