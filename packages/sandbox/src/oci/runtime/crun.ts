import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { identityOf, openProcessTable } from "../../host/process-table.ts";
import { findHierarchy } from "../cgroups/group.ts";
import { newUserMapping } from "../overlay/mapped.ts";
import { CommandRuntime } from "./command-runtime.ts";
import { crun } from "./dialect.ts";
import { tryRuntime } from "./trial.ts";

/** Where crun is tried. The caller removes what is left there if this process is killed meanwhile. */
export interface TrialPlace {
  /** A folder that every user can enter: for trials, and for what sandboxes of runsc share, which `removeShared` unmounts. */
  readonly sharedFolder?: string;
  /** A new control group. */
  readonly trialGroup?: () => string;
}

/** Prefix of folders of trials; the process is part of the name. */
const TRIAL = "trial-";
/** Another process of the home that cleans up may take the trial for something that was left. */
const TRIALS = 2;
const usable = new Map<string, Promise<boolean>>();

/** Whether crun starts a sandbox with its own users here. Tried once in this process. */
export function canUseCrun(path: string, place: TrialPlace): Promise<boolean> {
  const known = usable.get(path) ?? tryCrun(path, place);
  usable.set(path, known);
  return known;
}

async function tryCrun(path: string, { sharedFolder = tmpdir(), trialGroup }: TrialPlace): Promise<boolean> {
  const hierarchy = await findHierarchy();
  await mkdir(sharedFolder, { recursive: true, mode: 0o711 });
  await removeTrials(sharedFolder);
  for (let trial = 1; trial <= TRIALS; trial++) {
    const folder = await mkdtemp(join(sharedFolder, `${TRIAL}${process.pid}-`));
    try {
      const runtime = new CommandRuntime({ dialect: crun, program: path, root: join(folder, "runtime"), hierarchy });
      await tryRuntime(runtime, { folder, groupPath: trialGroup?.(), userMapping: newUserMapping() });
      return true;
    } catch {
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }
  return false;
}

/** Folders that processes left which were killed during their trial. */
async function removeTrials(parent: string): Promise<void> {
  const table = openProcessTable();
  for (const name of await readdir(parent)) {
    const pid = new RegExp(`^${TRIAL}(\\d+)-`).exec(name)?.[1];
    if (pid !== undefined && identityOf(table, Number(pid)) === null) await rm(join(parent, name), { recursive: true, force: true });
  }
}
