import { datasetHash } from "../checksum/dataset-hash.ts";
import { list, object } from "../fields/containers.ts";
import { InvalidValue, refine, withDefault } from "../fields/field.ts";
import { text } from "../fields/scalars.ts";
import { type PackageInfo, packageInfo, parsePackageName } from "../task/config/config.ts";
import { parseToml } from "../task/config/toml.ts";

/** `dataset.toml`: the tasks of a dataset, pinned by the hashes of their content. */
export interface DatasetManifest {
  readonly schema_version: string;
  readonly dataset: PackageInfo;
  readonly tasks: readonly { readonly name: string; readonly digest: string }[];
  readonly files: readonly { readonly path: string; readonly digest: string }[];
}

const DIGEST = /^sha256:[0-9a-f]{64}$/;

const digest = refine(text, (value, at) => {
  if (!DIGEST.test(value)) throw new InvalidValue(at, `'${value}' is not a digest: write sha256: and 64 hexadecimal digits`);
  return value;
});

/** Empty until the file is published. */
const fileDigest = refine(text, (value, at) => (value === "" ? "" : digest.parse(value, at)));

const fileName = refine(text, (value, at) => {
  if (value === "" || value.includes("/") || value.includes("\\")) throw new InvalidValue(at, `'${value}' is not a plain file name`);
  return value;
});

const manifest = object({
  schema_version: withDefault(text, "1.0"),
  dataset: packageInfo,
  tasks: withDefault(list(object({ name: refine(text, parsePackageName), digest })), []),
  files: withDefault(list(object({ path: fileName, digest: withDefault(fileDigest, "") })), []),
});

/** Throws `TomlSyntaxError` or `InvalidValue`. */
export function parseManifest(source: string): DatasetManifest {
  return manifest.parse(parseToml(source), "");
}

/** The content hash of the dataset, in hexadecimal. */
export function manifestHash({ tasks, files }: DatasetManifest): string {
  return datasetHash(
    tasks.map((task) => task.digest),
    files,
  );
}
