"""What a call through the bridge costs, beside the backend alone and two floors, in one interleaved run."""
