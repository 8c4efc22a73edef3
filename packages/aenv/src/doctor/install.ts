import { readFileSync } from "node:fs";

/** Tools that a distribution has as packages. */
export type Tool = "runc" | "skopeo" | "disk" | "network" | "docker" | "builder" | "redis" | "python" | "user-namespaces";

type Manager = "apt-get" | "dnf" | "apk" | "pacman" | "zypper";

const COMMANDS: Readonly<Record<Manager, string>> = {
  "apt-get": "apt-get install",
  dnf: "dnf install",
  apk: "apk add",
  pacman: "pacman -S",
  zypper: "zypper install",
};

const same = (names: string): Readonly<Record<Manager, string>> => ({
  "apt-get": names,
  dnf: names,
  apk: names,
  pacman: names,
  zypper: names,
});

const PACKAGES: Readonly<Record<Tool, Readonly<Record<Manager, string>>>> = {
  runc: same("runc"),
  skopeo: same("skopeo"),
  disk: same("e2fsprogs"),
  network: { ...same("nftables iproute2"), dnf: "nftables iproute" },
  docker: { ...same("docker"), "apt-get": "docker.io", dnf: "moby-engine" },
  builder: same("buildah"),
  redis: { ...same("redis"), "apt-get": "redis-server" },
  python: { ...same("python3"), pacman: "python" },
  "user-namespaces": same("util-linux"),
};

/** The command that installs a tool on this distribution; a sentence if the distribution is not known. */
export function installCommand(tool: Tool, osRelease: string = readOsRelease()): string {
  const manager = managerOf(osRelease);
  return manager === null
    ? `install ${PACKAGES[tool]["apt-get"]} with the package manager of this system`
    : `${COMMANDS[manager]} ${PACKAGES[tool][manager]}`;
}

/** The package manager is chosen by `ID` and `ID_LIKE` of os-release(5). */
function managerOf(osRelease: string): Manager | null {
  const values = [...osRelease.matchAll(/^ID(?:_LIKE)?=(.*)$/gm)].flatMap(([, value = ""]) => value.replaceAll('"', "").split(" "));
  const has = (...names: readonly string[]) => values.some((value) => names.includes(value));
  if (has("debian", "ubuntu")) return "apt-get";
  if (has("fedora", "rhel", "centos")) return "dnf";
  if (has("alpine")) return "apk";
  if (has("arch")) return "pacman";
  return has("suse", "opensuse") ? "zypper" : null;
}

function readOsRelease(): string {
  try {
    return readFileSync("/etc/os-release", "utf8");
  } catch {
    return "";
  }
}
