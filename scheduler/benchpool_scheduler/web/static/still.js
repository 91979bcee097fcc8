// For pages that stand still: times in the reader's zone, links to copy.
import { copyLinks } from "./links.js";
import { paintTimes } from "./times.js";

paintTimes(document);
setInterval(() => paintTimes(document), 15_000);
copyLinks();
