/** The `packages` of a lock file: what is installed at each path. */
export type LockedPackages = Readonly<Record<string, LockedPackage>>;

interface LockedPackage {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** The paths of packages and of everything that they need, in a `node_modules` folder. Optional packages that are not there are left out. */
export function packageClosure(names: readonly string[], packages: LockedPackages): string[] {
  const found = new Set<string>();
  const add = (name: string, from: string, isOptional: boolean): void => {
    const path = resolve(name, from, packages);
    if (path === null) {
      if (isOptional) return;
      throw new Error(`${name}, which ${from || "the package"} needs, is not in the lock file`);
    }
    if (found.has(path)) return;
    found.add(path);
    const { dependencies = {}, optionalDependencies = {} } = packages[path] as LockedPackage;
    for (const one of Object.keys(dependencies)) add(one, path, one in optionalDependencies);
    for (const one of Object.keys(optionalDependencies)) add(one, path, true);
  };
  for (const name of names) add(name, "", false);
  return [...found].sort();
}

/** As Node does: in the `node_modules` of the package itself, then of the folders above it. */
function resolve(name: string, from: string, packages: LockedPackages): string | null {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf("node_modules/") - 1))) {
    const path = `${folder === "" ? "" : `${folder}/`}node_modules/${name}`;
    if (packages[path] !== undefined) return path;
    if (folder === "") return null;
  }
}
