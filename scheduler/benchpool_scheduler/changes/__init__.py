"""What is otherwise in one run than in another: pure differences of what was sent and recorded."""
