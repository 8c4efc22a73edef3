import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { librariesOf, loaderOf } from "./libraries.ts";

/** A file, link or folder of the base root. */
export type RootFile =
  | { readonly type: "directory"; readonly path: string; readonly mode: number }
  | { readonly type: "symlink"; readonly path: string; readonly target: string }
  | { readonly type: "file"; readonly path: string; readonly mode: number; readonly content: RootContent };

/** A text, or a file of this machine. */
export type RootContent = { readonly text: string } | { readonly source: string };

/** The folder of the platform in the base root. */
const OWN = "/opt/aenv";

/** The command of the runner in the base root. */
export const baseRunnerCommand: readonly string[] = [`${OWN}/node`, `${OWN}/runner.js`];

/** Where distributions keep the certificates of authorities. */
const CERTIFICATES = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

/** glibc before 2.34 loads these when it resolves a name. */
const NAME_LOOKUP = ["libnss_files.so.2", "libnss_dns.so.2", "libresolv.so.2"];

/** Commands of this machine that are copied if it has them: enough for a shell to be of use. */
const COMMANDS = [
  ...["awk", "base64", "basename", "bash", "cat", "chmod", "cmp", "comm", "cp", "cut", "date", "dd", "df", "diff", "dirname", "du", "env"],
  ...["false", "find", "grep", "gzip", "head", "id", "join", "kill", "ln", "ls", "md5sum", "mkdir", "mkfifo", "mktemp", "mv", "nohup"],
  ...["nproc", "od", "paste", "printf", "ps", "pwd", "readlink", "realpath", "rm", "rmdir", "sed", "seq", "setsid", "sha256sum", "sleep"],
  ...["sort", "split", "stat", "tail", "tar", "tee", "test", "timeout", "touch", "tr", "true", "uname", "uniq", "wc", "xargs"],
];
const COMMAND_FOLDERS = ["/usr/bin", "/bin"];

const FOLDERS: readonly (readonly [path: string, mode: number])[] = [
  ["/", 0o755],
  ["/dev", 0o755],
  ["/home", 0o755],
  ["/proc", 0o755],
  ["/root", 0o700],
  ["/run", 0o755],
  ["/sys", 0o755],
  ["/tmp", 0o1777],
  ["/var", 0o755],
  ["/var/tmp", 0o1777],
];

const TEXTS: Readonly<Record<string, string>> = {
  "/etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/sh\n",
  "/etc/group": "root:x:0:\nnogroup:x:65534:\n",
  "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
  "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
  // Empty: an engine that gives a sandbox names replaces it.
  "/etc/resolv.conf": "",
};

export interface RootSources {
  /** The Node of this machine. */
  readonly nodePath: string;
  /** The runner as one file of JavaScript. */
  readonly runner: string;
  /** Modules of Node that its distribution ships as separate files. */
  readonly nodeModules: readonly string[];
}

/**
 * All files of the base root, sorted, each folder before its content: Node with its libraries, the runner, shells and common commands,
 * certificates.
 */
export async function rootFiles({ nodePath, runner, nodeModules }: RootSources): Promise<readonly RootFile[]> {
  const files = new Map<string, RootFile>();
  const add = (file: RootFile) => {
    for (let folder = dirname(file.path); folder !== "/" && !files.has(folder); folder = dirname(folder))
      files.set(folder, { type: "directory", path: folder, mode: 0o755 });
    if (!files.has(file.path) || file.type !== "symlink") files.set(file.path, file);
  };
  for (const [path, mode] of FOLDERS) add({ type: "directory", path, mode });
  for (const [path, text] of Object.entries(TEXTS)) add({ type: "file", path, mode: 0o644, content: { text } });
  const certificates = CERTIFICATES.find((path) => existsSync(path));
  if (certificates !== undefined) add({ type: "file", path: CERTIFICATES[0] as string, mode: 0o644, content: { source: certificates } });
  for (const source of nodeModules) if (existsSync(source)) add({ type: "file", path: source, mode: 0o644, content: { source } });
  add({ type: "file", path: `${OWN}/runner.js`, mode: 0o644, content: { text: runner } });
  add({ type: "symlink", path: "/usr/local/bin/node", target: `${OWN}/node` });
  // `child_process.exec` of Node needs a shell.
  const programs = [[nodePath, `${OWN}/node`] as const, ...(existsSync("/bin/sh") ? [["/bin/sh", "/bin/sh"] as const] : [])];
  for (const [source, path] of programs) {
    add({ type: "file", path, mode: 0o755, content: { source } });
    for (const library of await libraryFiles(source)) add(library);
  }
  const commands = existsSync("/bin/sh") ? await commandPrograms() : [];
  // A sandbox runs without them, so a command that is damaged is no reason to have none.
  const libraries = await libraryFiles(...commands).catch(() => null);
  for (const library of libraries ?? []) add(library);
  for (const source of libraries === null ? [] : commands)
    add({ type: "file", path: `/usr/bin/${basename(source)}`, mode: 0o755, content: { source } });
  // Scripts name it there.
  if (files.has("/usr/bin/bash")) add({ type: "symlink", path: "/bin/bash", target: "/usr/bin/bash" });
  return [...files.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** The commands that this machine has as dynamically linked programs, and not as scripts. */
async function commandPrograms(): Promise<string[]> {
  const paths = COMMANDS.flatMap((name) => COMMAND_FOLDERS.map((folder) => join(folder, name)).find((path) => existsSync(path)) ?? []);
  const loaders = await Promise.all(paths.map((path) => loaderOf(path).catch(() => null)));
  return paths.filter((_, at) => loaders[at] !== null);
}

async function libraryFiles(...programs: readonly string[]): Promise<RootFile[]> {
  const { loader, paths } = await librariesOf(...programs);
  if (loader === null) return [];
  const file = (path: string): RootFile => ({ type: "file", path, mode: 0o755, content: { source: path } });
  const files = [file(loader)];
  // The loader has no cache in the sandbox, so it searches only the standard folders. One of these holds the C library.
  const c = [...paths].find(([name]) => /^libc\./.test(name))?.[1] ?? loader;
  const standard = dirname(c);
  for (const [name, path] of paths) {
    files.push(file(path));
    if (join(standard, name) !== path) files.push({ type: "symlink", path: join(standard, name), target: path });
  }
  const optional = NAME_LOOKUP.map((name) => join(standard, name));
  return [...files, ...optional.filter((path) => existsSync(path)).map(file)];
}
