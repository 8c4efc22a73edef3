/** Processors of machines that run sandboxes, by Node's names. */
export type Architecture = "x64" | "arm64";
