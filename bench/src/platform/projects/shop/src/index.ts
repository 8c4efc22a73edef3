export { shop as default } from "../../../../kit/environment.ts";
