/** Paths of the platform, of the kernel, and of the verification itself. They are not compared. */
const NOT_COMPARED = [
  ...["/proc", "/sys", "/dev", "/tests", "/solution", "/oracle", "/logs/verifier"],
  ...["/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/etc/mtab", "/.dockerenv"],
];

/** Folders of programs and libraries. What the image has there stays as it is in the image. */
const SYSTEM = [
  ...["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"],
  ...["/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/libexec"],
  ...["/usr/local/bin", "/usr/local/sbin", "/usr/local/lib", "/usr/local/lib64", "/usr/local/libexec"],
];

/** Folders in which programs are looked up. */
const PROGRAMS = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/** Files that programs read at their start, whoever starts them. */
const HOOKS = [
  ...["/etc/ld.so.preload", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/profile", "/etc/profile.d"],
  ...[
    "/etc/bash.bashrc",
    "/etc/bashrc",
    "/etc/environment",
    "/etc/zsh",
    "/etc/pip.conf",
    "/etc/apt",
    "/etc/gitconfig",
    "/etc/npmrc",
    "/etc/uv",
  ],
  ...["/conftest.py", "/pytest.ini", "/.pytest.ini", "/pyproject.toml", "/tox.ini", "/setup.cfg"],
];
const HOME_HOOK =
  /^\/(?:root|home\/[^/]+)\/(?:\.bashrc|\.bash_profile|\.bash_login|\.bash_aliases|\.profile|\.zshrc|\.zshenv|\.curlrc|\.wgetrc|\.gitconfig|\.npmrc|\.pip|(?:\.config|\.cache)\/(?:pip|uv))(?:\/|$)/;
/** What Python imports by itself: modules for the site, plugins of packages, and compiled modules in place of their sources. */
const PYTHON_HOOKS = [
  /\/(?:site|dist)-packages\/[^/]+(?:\.pth|\.(?:dist|egg)-info\/entry_points\.txt)$/,
  /^\/(?:usr|etc|opt)\/(?:.*\/)?(?:site|user)customize(?:\.pyc?|\/.*)?$/,
  /\/(?:site|dist)-packages\/(?:site|user)customize(?:\.pyc?|\/.*)?$/,
  /\/python\d[\d.]*\/(?:.*\/)?__pycache__(?:\/|$)/,
];

/** Whether a path is compared at all. The task itself may have further folders that are not. */
export function isCompared(path: string, kept: readonly string[] = []): boolean {
  return !isBelow(path, NOT_COMPARED) && !isBelow(path, kept);
}

export interface ChangeRules {
  /** Whether the image has something at a path. */
  readonly isInImage: (path: string) => boolean;
  /** Paths that are taken in any case: what the task itself declares as its result. */
  readonly taken: readonly string[];
}

/**
 * Whether a change of the agent reaches the verifier's sandbox. Programs, libraries and start-up files stay those of the image, so that
 * the tests are run by what the image has; new files, and everything outside of the system's folders, are the agent's work.
 */
export function isTaken(path: string, { isInImage, taken }: ChangeRules): boolean {
  if (isBelow(path, taken)) return true;
  if (isBelow(path, HOOKS) || HOME_HOOK.test(path) || PYTHON_HOOKS.some((hook) => hook.test(path))) return false;
  if (isBelow(path, SYSTEM) && isInImage(path)) return false;
  return !hidesProgram(path, isInImage);
}

/** Folders with protected places in them, by their names. */
const ANCHORS = [/^\/(?:root|home(?:\/[^/]+)?)(?:\/\.(?:config|cache))?$/, /\/(?:site|dist)-packages$/, /\/python\d[\d.]*$/];

/**
 * Whether protected places are at a path or below it. Such a folder is not removed and not replaced by a link, which would lead to other
 * programs under the same names.
 */
export function isAnchor(path: string): boolean {
  const isAbove = (place: string) => place.startsWith(`${path}/`);
  return SYSTEM.includes(path) || [...SYSTEM, ...HOOKS].some(isAbove) || ANCHORS.some((anchor) => anchor.test(path));
}

/** Whether the verifier depends on what is at a path, below it or above it. */
export function isProtected(path: string): boolean {
  const isPlace =
    isBelow(path, [...SYSTEM, ...HOOKS, ...NOT_COMPARED]) || HOME_HOOK.test(path) || PYTHON_HOOKS.some((hook) => hook.test(path));
  return isPlace || isAnchor(path) || NOT_COMPARED.some((place) => place.startsWith(`${path}/`));
}

/** A new program with the name of another one, which would be found in place of it. */
function hidesProgram(path: string, isInImage: (path: string) => boolean): boolean {
  const folder = PROGRAMS.find((one) => path.startsWith(`${one}/`));
  const name = path.slice((folder?.length ?? 0) + 1);
  return folder !== undefined && !name.includes("/") && PROGRAMS.some((one) => isInImage(`${one}/${name}`));
}

function isBelow(path: string, folders: readonly string[]): boolean {
  return folders.some((folder) => path === folder || path.startsWith(`${folder}/`));
}
