import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { rootCertificates } from "node:tls";
import type { MachineVariables } from "../images/skopeo.ts";

/** Where distributions have the certificates of their authorities. */
const SYSTEM_FILES = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
  "/etc/ssl/cert.pem",
];
/** Where container tools look for the certificates of one registry, in a folder with its `host:port`. */
const REGISTRY_FOLDERS = ["/etc/containers/certs.d", "/etc/docker/certs.d"];

export interface TlsMaterial {
  readonly ca: readonly string[];
  readonly cert?: string;
  readonly key?: string;
}

/** What the server trusts, and shows, as a client of a host. */
export function tlsMaterial(host: string, variables: MachineVariables, folders: readonly string[] = REGISTRY_FOLDERS): TlsMaterial {
  const own = folders.map((folder) => join(folder, host)).map((folder) => ({ folder, names: namesIn(folder) }));
  const found = own.find(({ names }) => names.length > 0);
  const authorities = trusted(variables);
  if (found === undefined) return { ca: authorities };
  const read = (name: string) => readFileSync(join(found.folder, name), "utf8");
  const ca = [...authorities, ...found.names.filter((name) => name.endsWith(".crt")).map(read)];
  const pair = found.names.find((name) => name.endsWith(".cert") && found.names.includes(name.replace(/\.cert$/, ".key")));
  return pair === undefined ? { ca } : { ca, cert: read(pair), key: read(pair.replace(/\.cert$/, ".key")) };
}

/** The operator's file and folders, and those of the system unless both are set, as programs in Go read these variables. */
function trusted({ SSL_CERT_FILE: file = "", SSL_CERT_DIR: folders = "" }: MachineVariables): readonly string[] {
  const paths = folders.split(":").filter((folder) => folder !== "");
  const given = [
    ...(file === "" ? [] : [contentOf(file)]),
    ...paths.flatMap((folder) => namesIn(folder).map((name) => contentOf(join(folder, name)))),
  ].filter(isPem);
  if (file !== "" && paths.length > 0) return given;
  const system = SYSTEM_FILES.map(contentOf).find(isPem);
  return [...given, ...(system === undefined ? rootCertificates : [system])];
}

function isPem(text: string): boolean {
  return text.includes("-----BEGIN CERTIFICATE-----");
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
}

function contentOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
