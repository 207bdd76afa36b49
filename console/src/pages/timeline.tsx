// The timeline, fetched when it is opened first.
import { later } from "../ui/page";

export const TimelinePage = later(() => import("../timeline/page").then((it) => it.TimelinePage));
