// Names and keys that the theme leaves out, for readers without a mouse or with a screen reader. tests/cli/browser tests them.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  for (const caption of all(".caption[role=heading]")) caption.setAttribute("aria-level", "2");
  for (const side of all(".sidebar-drawer")) side.setAttribute("aria-label", "Pages");
  for (const side of all(".toc-drawer")) side.setAttribute("aria-label", "On this page");
  // What scrolls by itself can be reached with the keyboard. The width of the window decides.
  const reach = () => {
    for (const block of all("pre, .content table, .content p")) {
      if (block.scrollWidth > block.clientWidth) block.tabIndex = 0;
      else block.removeAttribute("tabindex");
    }
  };
  window.addEventListener("resize", reach);
  reach();
});
