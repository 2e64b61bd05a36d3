"""What is kept on disk: resumable states and model folders."""
