import { swebenchEnvironment } from "./episode/environment.ts";

export default swebenchEnvironment(process.env);
