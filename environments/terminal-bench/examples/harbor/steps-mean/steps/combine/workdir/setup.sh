touch second-ready
