"""What an operation finds around it while it runs: devices, the host, custom calls."""
