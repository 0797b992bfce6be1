// Reads what a person would see of an element: (element, {want, limit, seconds}) => …
//
// want "text":  {text, cut}; "links": {links: [{text, url}], cut}; "things": [{selector, text}], what can be acted on.
// Text that a page hides from people is left out: not displayed, transparent, tiny, the colour of its background, clipped
// away or beside the page. `limit` bounds characters or entries, `seconds` the time; `cut` tells that one was reached.
(element, {want, limit, seconds}) => {
  const deadline = performance.now() + seconds * 1000
  const states = new Map()
  const page = document.scrollingElement || document.documentElement
  const widest = Math.max(innerWidth, Math.min(page.scrollWidth, 2 * innerWidth))
  const LEAST = 2, FAINTEST = 0.1, SMALLEST_FONT = 4, LEAST_CONTRAST = 24
  const FLAT = /^(inset\((5\d|[6-9]\d|100)%|circle\(0|ellipse\(0|polygon\((0(px|%)? 0(px|%)?[, ]*)+\)|rect\(0(px)? 0(px)?)/

  const late = () => performance.now() > deadline
  const colour = text => {
    const parts = (text.match(/^rgba?\(([^)]*)\)/) || ["", ""])[1].split(/[, /]+/).map(Number)
    return parts.length >= 3 ? [parts[0], parts[1], parts[2], parts.length > 3 ? parts[3] : 1] : null
  }
  const over = (front, back) =>
    front.slice(0, 3).map((value, i) => value * front[3] + back[i] * (1 - front[3])).concat(1)
  const meet = (a, b) => !a ? b : !b ? a : {
    left: Math.max(a.left, b.left), top: Math.max(a.top, b.top),
    right: Math.min(a.right, b.right), bottom: Math.min(a.bottom, b.bottom),
  }
  const above = node => node.assignedSlot || node.parentElement || (node.getRootNode() || {}).host || null
  const clips = style => [style.overflowX, style.overflowY].some(value => value === "hidden" || value === "clip")

  // What holds for all text in an element: shown, how opaque, the colour behind it (null: unknown), where it is cut off.
  const stateOf = node => {
    if (!node) return {shown: true, opacity: 1, back: [255, 255, 255, 1], clip: null, filled: false}
    const known = states.get(node)
    if (known) return known
    const outer = stateOf(above(node)), style = getComputedStyle(node)
    const state = {...outer, style}
    states.set(node, state)
    state.opacity *= parseFloat(style.opacity)
    if (/opacity\(0(\.0\d*)?%?\)/.test(style.filter)) state.opacity = 0
    const back = colour(style.backgroundColor)
    state.filled = outer.filled || (style.backgroundClip === "text" && style.backgroundImage !== "none")
    if (style.backgroundImage !== "none") state.back = null
    else if (back === null) state.back = null
    else if (back[3] >= 0.99) state.back = back
    else if (back[3] > 0) state.back = state.back && over(back, state.back)
    if (style.position === "fixed") state.clip = null
    else if (style.position === "absolute") state.clip = node.offsetParent ? stateOf(node.offsetParent).clip : null
    if (clips(style) && node !== document.body && node !== document.documentElement)
      state.clip = meet(state.clip, node.getBoundingClientRect())
    const box = style.position === "absolute" && /^rect\(([^)]*)\)/.exec(style.clip)
    const sides = box ? box[1].split(/[, ]+/).map(parseFloat) : null
    const flat = FLAT.test(style.clipPath) || (sides && (sides[1] - sides[3] < LEAST || sides[2] - sides[0] < LEAST))
    state.shown = outer.shown && !flat && style.display !== "none" && style.contentVisibility !== "hidden"
    return state
  }
  const onPage = (rect, clip) => {
    const seen = meet({left: rect.left, top: rect.top, right: rect.right, bottom: rect.bottom}, clip)
    return seen.right - seen.left >= Math.min(LEAST, rect.width || LEAST) && seen.bottom - seen.top >= LEAST
      && rect.height >= LEAST && rect.width >= 1
      && rect.right + scrollX > 0 && rect.bottom + scrollY > 0 && rect.left + scrollX < widest
  }
  const legible = state => {
    const style = state.style
    if (!state.shown || style.visibility !== "visible" || parseFloat(style.fontSize) < SMALLEST_FONT) return false
    if (state.opacity < FAINTEST) return false
    const ink = colour(style.webkitTextFillColor) || colour(style.color)
    if (state.filled || style.textShadow !== "none" || ink === null) return true
    if (ink[3] * state.opacity < FAINTEST) return false
    if (state.back === null) return true
    const drawn = over(ink, state.back)
    return [0, 1, 2].reduce((sum, i) => sum + Math.abs(drawn[i] - state.back[i]), 0) >= LEAST_CONTRAST
  }
  const range = document.createRange()
  const lies = (node, start, end, clip) => {
    range.setStart(node, start)
    range.setEnd(node, end)
    const rects = [...range.getClientRects()]
    return {some: rects.some(rect => onPage(rect, clip)), every: rects.every(rect => onPage(rect, clip))}
  }
  // The part of a text node that can be seen; word by word where only a part can.
  const seen = (node, state) => {
    const text = node.data
    const whole = lies(node, 0, text.length, state.clip)
    if (!whole.some) return ""
    if (whole.every) return text
    return text.replace(/\S+/g, (word, at) => !late() && lies(node, at, at + word.length, state.clip).some ? word : "")
  }

  const pieces = []
  let size = 0, cut = false
  const put = text => {
    if (text) pieces.push(text)
    size += text.length
    if (size > limit * 2 || late()) cut = true
  }
  const within = node => {
    const rect = node.getBoundingClientRect(), state = stateOf(node)
    return state.shown && state.style.visibility === "visible" && state.opacity >= FAINTEST && onPage(rect, state.clip)
  }
  const field = node => {
    if (!within(node) || node.type === "password") return ""
    if (node.tagName === "SELECT") return [...node.selectedOptions].map(one => one.label).join(", ")
    return ["checkbox", "radio", "hidden", "file", "image", "range", "color"].includes(node.type) ? "" : node.value
  }
  const childrenOf = node =>
    node.tagName === "SLOT" && node.assignedNodes().length ? node.assignedNodes() : (node.shadowRoot || node).childNodes
  const gap = style => style.display.startsWith("inline") || style.display === "contents" || style.display === "none"
    ? (style.display.startsWith("inline-") ? " " : "") : style.display === "table-cell" ? "\t" : "\n"
  const walk = (node, depth) => {
    if (cut || depth > 1500) return
    if (node.nodeType === Node.TEXT_NODE) {
      const state = stateOf(above(node))
      if (!node.data.trim()) return put(" ")
      if (!legible(state)) return
      const text = seen(node, state)
      return put(state.style.whiteSpaceCollapse.startsWith("preserve") ? text : text.replace(/\s+/g, " "))
    }
    if (node.nodeType !== Node.ELEMENT_NODE) return
    if (node.tagName === "BR") return put("\n")
    if (["INPUT", "TEXTAREA", "SELECT"].includes(node.tagName)) return put(" " + field(node) + " ")
    const state = stateOf(node)
    if (!state.shown) return
    const edge = gap(state.style), wide = /^(P|H[1-6]|UL|OL|TABLE|BLOCKQUOTE|PRE)$/.test(node.tagName) ? "\n" : ""
    put(edge + wide)
    const closed = node.tagName === "DETAILS" && !node.open
    for (const child of closed ? node.querySelectorAll(":scope > summary:first-of-type") : childrenOf(node))
      walk(child, depth + 1)
    if (edge !== "\t") put(edge + wide)
  }
  const textOf = node => {
    pieces.length = size = 0
    cut = false
    walk(node, 0)
    const text = pieces.join("").replace(/[ \t]*\n[ \t]*/g, "\n").replace(/ {2,}/g, " ").replace(/\n{3,}/g, "\n\n").trim()
    return {text: text.slice(0, limit), cut: cut || text.length > limit}
  }
  const short = text => String(text || "").replace(/\s+/g, " ").trim().slice(0, 80)

  if (want === "text") return textOf(element)
  if (want === "links") {
    const links = []
    for (const link of element.querySelectorAll("a[href], area[href]")) {
      if (links.length >= limit || late()) return {links, cut: true}
      if (!/^(https?|mailto|tel|ftp):/.test(link.href)) continue
      const image = link.querySelector("img, svg")
      const text = (stateOf(link).shown && short(textOf(link).text))
        || (image && within(image) ? short(image.alt || link.getAttribute("aria-label") || link.title) || "[image]" : "")
      if (text) links.push({text, url: link.href.slice(0, 2000)})
    }
    return {links, cut: false}
  }
  const things = []
  const quoted = text => JSON.stringify(text)
  for (const one of element.querySelectorAll("a[href], button, input, select, textarea, summary, [role], [onclick]")) {
    if (things.length >= limit || late()) break
    if (!within(one)) continue
    const written = ["submit", "button", "reset"].includes(one.type) ? one.value : ""
    const text = short(one.getAttribute("aria-label") || one.innerText || one.placeholder || written || one.title)
    const role = one.getAttribute("role") || {A: "link", BUTTON: "button"}[one.tagName]
    const name = one.getAttribute("name"), tag = one.tagName.toLowerCase()
    const selector = one.id && /^[A-Za-z][\w-]*$/.test(one.id) ? "#" + one.id
      : role && text ? `role=${role}[name=${quoted(text)}]`
      : name ? `${tag}[name=${quoted(name)}]` : text ? `text=${text}` : tag
    things.push({selector, text})
  }
  return things
}
