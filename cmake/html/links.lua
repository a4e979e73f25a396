-- Links among pages as HTML has them, and boxes of text as pictures. For pandoc.

-- "a/b.md#c" becomes "a/b.html#c", "README.md" "index.html", and "a.c#L3" "a.c.html#L3". Links elsewhere stay.
function Link(link)
  if link.target:match("^%a+:") or link.target:match("^#") then return nil end
  local path, anchor = link.target:match("^([^#]*)(#?.*)$")
  if path:match("README%.md$") then path = path:gsub("README%.md$", "index.html")
  elseif path:match("%.md$") then path = path:gsub("%.md$", ".html")
  else path = path .. ".html" end
  link.target = path .. anchor
  return link
end

-- Boxes are drawn of + - and | by the commands: an array's blocks on their devices.
local letter_width, line_height = 8, 18

local function escaped(text) return (text:gsub("&", "&amp;"):gsub("<", "&lt;")) end

local function line(x1, y1, x2, y2)
  return string.format('<line x1="%d" y1="%d" x2="%d" y2="%d"/>', x1, y1, x2, y2)
end

-- Runs of characters of a class in a line, as pairs of first and last column.
local function runs(text, class)
  local found, at = {}, 1
  while true do
    local first, last = text:find(class, at)
    if not first then return found end
    if last > first then found[#found + 1] = {first, last} end
    at = last + 1
  end
end

local function drawn(rows)
  local width, parts = 0, {}
  for _, row in ipairs(rows) do width = math.max(width, #row) end
  local function x(column) return column * letter_width end
  local function y(row) return row * line_height end
  for r, row in ipairs(rows) do
    for _, run in ipairs(runs(row, "[-+]+")) do parts[#parts + 1] = line(x(run[1]), y(r), x(run[2]), y(r)) end
    for first, words, last in row:gmatch("()([^%s|+-][^|+]-)()%f[%s|+\0][%s|+]") do
      if not words:match("^[-+|%s]*$") then
        local middle = (first + last - 1) / 2
        parts[#parts + 1] = string.format('<text x="%d" y="%d">%s</text>', x(middle), y(r) + 5, escaped(words))
      end
    end
  end
  for column = 1, width do
    local letters = {}
    for r, row in ipairs(rows) do letters[r] = row:sub(column, column) == "" and " " or row:sub(column, column) end
    for _, run in ipairs(runs(table.concat(letters), "[|+]+")) do
      parts[#parts + 1] = line(x(column), y(run[1]), x(column), y(run[2]))
    end
  end
  return string.format('<svg class="boxes" width="%d" height="%d" role="img">%s</svg>', (width + 1) * letter_width,
                       (#rows + 1) * line_height, table.concat(parts))
end

local function is_box(text) return text:match("^[+|][-+|%w%s.,:]*[+|]$") ~= nil end

function CodeBlock(block)
  if not block.classes:includes("console") then return nil end
  local blocks, plain, box = {}, {}, {}
  local function end_box()
    if #box >= 3 and box[1]:match("^%+") then
      if #plain > 0 then blocks[#blocks + 1] = pandoc.CodeBlock(table.concat(plain, "\n"), block.attr) end
      blocks[#blocks + 1] = pandoc.RawBlock("html", drawn(box))
      plain = {}
    else
      for _, text in ipairs(box) do plain[#plain + 1] = text end
    end
    box = {}
  end
  for text in (block.text .. "\n"):gmatch("(.-)\n") do
    if is_box(text) then box[#box + 1] = text
    else
      end_box()
      plain[#plain + 1] = text
    end
  end
  end_box()
  if #plain > 0 then blocks[#blocks + 1] = pandoc.CodeBlock(table.concat(plain, "\n"), block.attr) end
  return blocks
end
