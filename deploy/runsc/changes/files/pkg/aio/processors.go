package aio

// mostProcessors limits by how many a queue raises GOMAXPROCS: one for each of 128 workers takes longer than a small restore.
const mostProcessors = 4
