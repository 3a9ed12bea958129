(function (selector, most) {
  // The page as it stands, as HTML: with what is in open shadow roots and in
  // frames of the same origin, and without what is no text. It runs in a world
  // of its own, in which nothing is the page's but its nodes.
  const skip = new Set(["script", "style", "link", "object", "embed", "svg", "canvas", "video", "audio", "source", "track", "input"]);
  const empty = new Set(["area", "base", "br", "col", "hr", "img", "meta", "wbr"]);
  const kept = new Set(["href", "src", "alt", "title", "id", "class", "role", "lang", "dir", "datetime", "colspan", "rowspan", "start", "name", "content", "property", "itemprop", "rel", "hidden", "aria-hidden", "charset"]);
  const out = [];
  let size = 0, cut = false;
  const put = (s) => {
    if (size + s.length > most) cut = true;
    if (!cut) out.push(s), (size += s.length);
  };
  const text = (s) => s.replace(/[&<>\u00a0]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", "\u00a0": "&nbsp;" })[c]);
  const attribute = (a) => " " + a.name + '="' + text(a.value.slice(0, 4096)).replace(/"/g, "&quot;") + '"';
  function* below(node) {
    if (node.localName === "slot" && node.assignedNodes) {
      const assigned = node.assignedNodes();
      yield* assigned.length ? assigned : node.childNodes;
      return;
    }
    if (node.localName === "iframe" || node.localName === "frame") {
      let inner = null;
      try { inner = node.contentDocument; } catch (_) {}
      if (inner && inner.body) yield* inner.body.childNodes;
      return;
    }
    if (node.shadowRoot) yield* node.shadowRoot.childNodes;
    else if (node.localName === "template") return;
    else yield* node.childNodes;
  }
  function write(node) {
    if (cut) return;
    if (node.nodeType === 3) return put(text(node.data));
    if (node.nodeType !== 1) return;
    let tag = node.localName;
    const about = tag === "script" && node.type === "application/ld+json";
    if (about) return put('<script type="application/ld+json">' + node.textContent.slice(0, 65536).replace(/</g, "\\u003c") + "</script>");
    if (skip.has(tag) || tag === "noscript") return;
    if (tag === "iframe" || tag === "frame") tag = "div";
    if (!/^[a-z][a-z0-9-]*$/.test(tag)) tag = "span";
    put("<" + tag);
    for (const a of node.attributes) if (kept.has(a.name)) put(attribute(a));
    put(">");
    if (empty.has(tag)) return;
    for (const child of below(node)) write(child);
    put("</" + tag + ">");
  }
  let found = null;
  if (selector) {
    found = document.querySelectorAll(selector).length;
    put("<html><head><title>" + text(document.title) + "</title></head><body>");
    for (const node of document.querySelectorAll(selector)) write(node);
    put("</body></html>");
  } else if (document.documentElement) {
    try {
      write(document.documentElement);
    } catch (_) { // it is deeper than the stack
      out.length = 0;
      out.push(document.documentElement.outerHTML.slice(0, most));
    }
  }
  return { url: location.href, title: String(document.title).slice(0, 1024), found, html: out.join(""), cut };
})
