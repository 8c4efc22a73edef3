import { execFileSync } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface SmallDisk extends Disposable {
  readonly path: string;
}

/** `using disk = mountSmallDisk(8)`: a disk of so many MB, unmounted at the end whatever still uses it. Needs the component `tmpfs`. */
export function mountSmallDisk(megabytes: number): SmallDisk {
  const path = realpathSync(mkdtempSync(join(tmpdir(), "aenv-small-disk-")));
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", path]);
  return {
    path,
    [Symbol.dispose]: () => {
      // Lazily: a process that could not be ended yet must not keep it.
      execFileSync("umount", ["-l", path]);
      rmSync(path, { recursive: true, force: true });
    },
  };
}
