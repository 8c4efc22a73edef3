/** A line of `/proc/PID/mountinfo`. */
export interface MountLine {
  /** The folder of the file system that is mounted. */
  readonly root: string;
  /** Where it is mounted. */
  readonly target: string;
  readonly type: string;
  /** The options of the file system, such as the controllers of a cgroup. */
  readonly options: readonly string[];
}

/** Skips lines of another form. */
export function parseMountinfo(text: string): MountLine[] {
  const mounts: MountLine[] = [];
  for (const line of text.split("\n")) {
    const [mount = "", superblock = ""] = line.split(" - ");
    const [, , , root, target] = mount.split(" ");
    const [type = "", , options = ""] = superblock.split(" ");
    if (root === undefined || target === undefined || type === "") continue;
    mounts.push({ root: decodeOctal(root), target: decodeOctal(target), type, options: options.split(",") });
  }
  return mounts;
}

/** Spaces and some other characters are escaped as octal numbers. */
function decodeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8)));
}
