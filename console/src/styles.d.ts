// Styles that a part brings along.
declare module "*.css";
