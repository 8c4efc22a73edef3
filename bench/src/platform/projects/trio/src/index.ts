export { environment as default } from "../../../../kit/environment.ts";
