"""What is promised: mechanisms, distances, calibration and guarantees."""
