// Archives and trajectories are read and written by the code that also serves images, bundles and exports.
export {
  type AtifSource,
  atifSteps,
  latin1,
  latin1Bytes,
  readTarEntries,
  TAR_END,
  type TarEntry,
  type TarType,
  tarEntryHeader,
  tarPaddingBytes,
} from "@aenv/contract";
export { decodeLenient, decodeStrict } from "./python/bytes.ts";
export { attributeError, PyError, typeError, valueError } from "./python/errors.ts";
export { type JsonOf, type JsonTypes, parseJson } from "./python/json.ts";
export { type JsonShape, layOutJson, quoteJson, writeJson } from "./python/json-text.ts";
export { indent, splitLines, universalNewlines } from "./python/lines.ts";
export { floatRepr, isDigits, isZero, MAX_DIGITS, parseFloatText, toFloat } from "./python/numbers.ts";
export { isList, isObject, type Json, type JsonObject, readJson } from "./python/plain-json.ts";
export { laxBool, laxFloat, laxInt } from "./python/pydantic.ts";
export {
  after,
  afterLast,
  before,
  beforeLast,
  collapse,
  compareText,
  cutTail,
  firstWord,
  indentOf,
  isBlank,
  isSpace,
  lstrip,
  rstrip,
  SPACES,
  strip,
  WORD,
  words,
} from "./python/text.ts";
