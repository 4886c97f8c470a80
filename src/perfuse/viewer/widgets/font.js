// The font of labels in pictures, that of the pages.

export const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
