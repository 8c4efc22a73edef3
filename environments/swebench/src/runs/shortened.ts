/** The beginning and the end of a text that is too long, and a line between them that says so. */
export function shortened(text: string, most: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= most) return text;
  const half = Math.floor(most / 2);
  return `${bytes.subarray(0, half)}\n[${bytes.length - 2 * half} bytes are left out]\n${bytes.subarray(bytes.length - half)}`;
}

const LEFT_OUT = /^\[\d+ bytes are left out\]$/m;

/** Whether a stored text is not whole. A program that prints such a line itself only has its output not graded anew. */
export function isShortened(bytes: Uint8Array): boolean {
  return LEFT_OUT.test(Buffer.from(bytes).toString("latin1"));
}

/** A patch, or, if it is too long, a line that no program takes for one: a part of it would be another patch. */
export function patchOrNote(patch: string, most: number): string {
  const size = Buffer.byteLength(patch);
  return size <= most ? patch : `[the patch of ${size} bytes is too long to be kept]\n`;
}
