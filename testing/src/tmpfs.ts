import { execFileSync } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface SmallDisk extends Disposable {
  readonly path: string;
}

/** `using disk = mountSmallDisk(8)`: a disk of this many MB, unmounted at the end even if it is in use. Needs the component `tmpfs`. */
export function mountSmallDisk(megabytes: number): SmallDisk {
  return mountNew("tmpfs", `size=${megabytes}m`);
}

/** The same, of a file system that cannot translate the owners of files. */
export function mountUntranslatedDisk(): SmallDisk {
  return mountNew("ramfs", "mode=755");
}

function mountNew(type: "tmpfs" | "ramfs", options: string): SmallDisk {
  const path = realpathSync(mkdtempSync(join(tmpdir(), "aenv-small-disk-")));
  execFileSync("mount", ["-t", type, "-o", options, type, path]);
  return {
    path,
    [Symbol.dispose]: () => {
      // Lazy unmount: a process that still runs must not block it.
      execFileSync("umount", ["-l", path]);
      rmSync(path, { recursive: true, force: true });
    },
  };
}
