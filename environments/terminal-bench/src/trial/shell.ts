/** A text as one word of bash. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/**
 * Makes a path a real, empty directory. `rm` without a trailing slash removes a link itself, so nothing outside is touched when the agent
 * replaced the directory by a link.
 */
export function freshDirectory(path: string, mode: string): string {
  return `rm -rf ${quoted(path)} && mkdir -p ${quoted(path)} && chown 0:0 ${quoted(path)} && chmod ${mode} ${quoted(path)}`;
}

/** Replaces a path by a directory unless it is one; a link to a directory is not. */
export function realDirectory(path: string): string {
  return `{ [ -d ${quoted(path)} ] && [ ! -L ${quoted(path)} ] || { rm -rf ${quoted(path)} && mkdir -p ${quoted(path)}; }; }`;
}
