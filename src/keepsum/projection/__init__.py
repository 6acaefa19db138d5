"""The nearest table without negative counts that keeps every total: from released counts alone."""
