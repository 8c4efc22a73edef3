export { type Prepared, type PrepareOptions, prepareData } from "./prepare.ts";
