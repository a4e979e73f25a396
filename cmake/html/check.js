// Loads the pages one by one in a frame; writes a line for each fault, and last "done: N pages, N links, N pictures".
const say = (text) => (document.getElementById("result").textContent += text + "\n");
const anchors = {}; // by page: the ids of its elements
const links = [];   // [page, page of the link, anchor]
let pictures = 0;

function open(page) {
  return new Promise((resolve) => {
    const frame = document.createElement("iframe");
    frame.width = 1200;
    frame.height = 800;
    frame.onload = () => resolve(frame);
    frame.src = root + page;
    document.body.appendChild(frame);
  });
}

function look(page, document_) {
  const main = document_.querySelector("main");
  if (!document_.title) say(page + ": no title");
  if (!main || !main.querySelector("h1")) return say(page + ": no heading");
  if (main.innerText.length < 100) say(page + ": hardly any text");
  if (main.getBoundingClientRect().width < 400) say(page + ": the text is too narrow");
  if (document_.querySelectorAll("nav a").length < 20) say(page + ": no navigation");
  if (document_.querySelectorAll("nav a.here").length > 1) say(page + ": the navigation marks several pages");
  for (const image of document_.images) {
    pictures++;
    if (!image.complete || image.naturalWidth === 0) say(page + ": no picture: " + image.getAttribute("src"));
    if (!image.alt) say(page + ": a picture without words: " + image.getAttribute("src"));
  }
  for (const box of document_.querySelectorAll("svg.boxes")) {
    pictures++;
    const area = box.getBoundingClientRect();
    for (const part of box.querySelectorAll("line, text")) {
      const at = part.getBoundingClientRect();
      if (at.left < area.left - 1 || at.right > area.right + 1 || at.bottom > area.bottom + 1) say(page + ": a box leaves its picture");
    }
  }
  anchors[page] = new Set([...document_.querySelectorAll("[id]")].map((element) => element.id));
  for (const link of document_.querySelectorAll("a[href]")) {
    const place = new URL(link.href);
    if (place.protocol !== "file:") continue;
    const target = decodeURIComponent(place.href.replace(place.hash, ""));
    links.push([page, target.startsWith(root) ? target.slice(root.length) : target, decodeURIComponent(place.hash.slice(1))]);
  }
}

async function check() {
  for (const page of pages) {
    const frame = await open(page);
    try {
      look(page, frame.contentDocument);
    } catch (error) {
      say(page + ": " + error);
    }
    frame.remove();
  }
  for (const [page, target, anchor] of links) {
    if (!(target in anchors)) say(page + ": no such page: " + target);
    else if (anchor && !anchors[target].has(anchor)) say(page + ": no such anchor: " + target + "#" + anchor);
  }
  say("done: " + pages.length + " pages, " + links.length + " links, " + pictures + " pictures");
}
check();
