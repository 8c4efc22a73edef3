export { decodeLenient, decodeStrict, universalNewlines } from "./python/bytes.ts";
export { isList, isObject, type Json, type JsonObject, readJson } from "./python/json-reader.ts";
export { writeJson } from "./python/json-writer.ts";
export { isZero, parseFloatText } from "./python/numbers.ts";
export { RaisedError } from "./python/raised.ts";
export {
  after,
  afterLast,
  before,
  beforeLast,
  collapse,
  compareText,
  cutTail,
  indentOf,
  isSpace,
  lstrip,
  rstrip,
  SPACES,
  strip,
  words,
} from "./python/text.ts";
