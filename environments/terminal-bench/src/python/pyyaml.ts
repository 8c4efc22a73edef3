import { type CollectionTag, parseDocument, type ScalarTag } from "yaml";

/** A file that is not YAML. */
export class YamlSyntaxError extends Error {
  override readonly name = "YamlSyntaxError";
}

/** A document as PyYAML's `safe_load` reads it: YAML 1.1, with its own rules for plain scalars. Dates stay texts. */
export function parseYaml(source: string): unknown {
  const document = parseDocument(source, {
    version: "1.1",
    customTags: (tags) => [...tags.filter(isKept), nothing, yesNo, wholeNumber, fraction],
    merge: true,
    uniqueKeys: false,
    logLevel: "error",
  });
  const [error] = document.errors;
  if (error !== undefined) throw new YamlSyntaxError(error.message.split("\n")[0] ?? error.message, { cause: error });
  return document.toJS({ maxAliasCount: 100 });
}

const KEPT = new Set(["map", "seq", "str", "merge"].map((name) => `tag:yaml.org,2002:${name}`));

function isKept(tag: string | ScalarTag | CollectionTag): boolean {
  return typeof tag === "string" ? tag === "merge" || tag === "<<" : KEPT.has(tag.tag) || tag.tag === "<<";
}

const nothing: ScalarTag = { tag: "tag:yaml.org,2002:null", default: true, test: /^(?:~|null|Null|NULL|)$/, resolve: () => null };

// PyYAML leaves `y` and `n` as strings.
const yesNo: ScalarTag = {
  tag: "tag:yaml.org,2002:bool",
  default: true,
  test: /^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$/,
  resolve: (text) => /^(?:yes|true|on)$/i.test(text),
};

const wholeNumber: ScalarTag = {
  tag: "tag:yaml.org,2002:int",
  default: true,
  test: /^[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*(?::[0-5]?[0-9])*)$/,
  resolve: (text) => intOf(text),
};

// A float needs a dot, and one that starts with it has no sign: `1e3` and `-.5` are strings.
const fraction: ScalarTag = {
  tag: "tag:yaml.org,2002:float",
  default: true,
  test: /^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/,
  resolve: (text) => floatOf(text.toLowerCase()),
};

/** Whole numbers are bigint, so that 1 and 1.0 stay apart. */
function intOf(text: string): bigint {
  const isNegative = text.startsWith("-");
  const digits = text.replace(/[-+_]/g, "");
  const size = digits.includes(":")
    ? BigInt(sexagesimal(digits))
    : /^0[0-7]/.test(digits)
      ? BigInt(`0o${digits.slice(1)}`)
      : BigInt(digits);
  return isNegative ? -size : size;
}

function floatOf(text: string): number {
  const sign = text.startsWith("-") ? -1 : 1;
  const digits = text.replace(/^[-+]/, "").replaceAll("_", "");
  if (digits === ".inf") return sign * Number.POSITIVE_INFINITY;
  if (digits === ".nan") return Number.NaN;
  return sign * (digits.includes(":") ? sexagesimal(digits) : Number(digits));
}

function sexagesimal(text: string): number {
  return text.split(":").reduce((sum, part) => sum * 60 + Number(part), 0);
}
