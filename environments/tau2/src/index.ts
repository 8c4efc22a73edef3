import { domains, openDomain } from "./domains/index.ts";
import { tau2Environment } from "./episode/environment.ts";

export default tau2Environment({ domains, open: openDomain, variables: process.env });
