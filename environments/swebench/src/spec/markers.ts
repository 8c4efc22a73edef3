/** The script prints these lines around the output of the tests. */
export const START_MARKER = ">>>>> Start Test Output";
export const END_MARKER = ">>>>> End Test Output";

/** Marker of the exit code of the tests. */
export const EXIT_CODE_MARKER = ">>>>> Test Exit Code:";
