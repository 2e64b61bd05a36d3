"""Models on disk: training states to resume from, model folders, and the files of other libraries."""
