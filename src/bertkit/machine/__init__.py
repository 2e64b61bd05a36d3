"""What the computer has and does: processor, devices, number formats, memory, energy, and signals to the process."""
