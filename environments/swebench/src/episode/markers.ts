import { END_MARKER, EXIT_CODE_MARKER, START_MARKER } from "../spec/markers.ts";

/** A log with this text has no results, by the rules of the reference. */
export const TESTS_ERRORED = ">>>>> Tests Errored";

/** Markers that occur more often in the output than the script prints them. A trace shows a command, and an echo prints it once more. */
export function forgedMarkers(script: string, output: string): string[] {
  const lines = script.split("\n");
  const printed = (marker: string) => lines.filter((line) => line.includes(marker)).length * (marker === EXIT_CODE_MARKER ? 2 : 1);
  return [START_MARKER, END_MARKER, EXIT_CODE_MARKER].filter((marker) => output.split(marker).length - 1 > printed(marker));
}
