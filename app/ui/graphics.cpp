#include <glad/gl.h>

#include "app/ui/graphics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/paths.h"

namespace hydrascope::app {

namespace {

GLuint compile(GLenum kind, const std::filesystem::path& file) {
  const std::string source = read_text_file(file);
  const char* text = source.c_str();
  const GLuint shader = glCreateShader(kind);
  glShaderSource(shader, 1, &text, nullptr);
  glCompileShader(shader);
  GLint ok = 0;
  glGetShaderiv(shader, GL_COMPILE_STATUS, &ok);
  if (ok == 0) {
    std::array<char, 1024> log{};
    glGetShaderInfoLog(shader, static_cast<GLsizei>(log.size()), nullptr, log.data());
    glDeleteShader(shader);
    throw Error(file.string(), std::string("does not compile: ") + log.data(), "restore the file");
  }
  return shader;
}

void set_filter(GLint filter) {
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, filter);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, filter);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_S, GL_CLAMP_TO_EDGE);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_T, GL_CLAMP_TO_EDGE);
}

// NaN (a masked cell) equals NaN.
bool same_values(const Array& left, const Array& right) {
  return left.shape == right.shape && std::ranges::equal(left.values, right.values, [](float a, float b) {
           return a == b || (a != a && b != b);
         });
}

bool same_scale(const Scale& left, const Scale& right) {
  return left.map == right.map && left.low == right.low && left.high == right.high &&
         left.logarithmic == right.logarithmic;
}

std::size_t hash_of(const Array& values, const Scale& scale, const Graphics::Paint& paint) {
  const std::string_view bytes(reinterpret_cast<const char*>(values.values.data()),
                               values.values.size() * sizeof(float));
  std::size_t hash = std::hash<std::string_view>{}(bytes);
  const auto mix = [&](std::size_t more) { hash = (hash ^ more) * 0x9e3779b97f4a7c15ULL; };
  mix(std::hash<double>{}(scale.low));
  mix(std::hash<double>{}(scale.high));
  mix(static_cast<std::size_t>(scale.map) * 64 + static_cast<std::size_t>(paint.backdrop) * 16 +
      (paint.blank_missing ? 8 : 0) + (scale.logarithmic ? 4 : 0) +
      static_cast<std::size_t>(paint.interpolation));
  return hash;
}

} // namespace

Texture::~Texture() {
  if (id_ != 0) unused().since.push_back(id_);
}
Texture::Unused& Texture::unused() {
  static Unused own;
  return own;
}
void Texture::delete_unused() {
  Unused& own = unused();
  // Without a display there are none, nor OpenGL's functions.
  if (!own.before.empty()) glDeleteTextures(static_cast<GLsizei>(own.before.size()), own.before.data());
  own.before = std::exchange(own.since, {});
}
Texture::Texture(Texture&& other) noexcept : id_(std::exchange(other.id_, 0)) {}
Texture& Texture::operator=(Texture&& other) noexcept {
  std::swap(id_, other.id_);
  return *this;
}
Texture Texture::make() {
  Texture texture;
  glGenTextures(1, &texture.id_);
  return texture;
}

Graphics::Graphics(const theme::Fonts& fonts) : fonts_(fonts) {
  const GLuint vertex = compile(GL_VERTEX_SHADER, shaders_folder() / "map.vert");
  const GLuint fragment = compile(GL_FRAGMENT_SHADER, shaders_folder() / "colour_map.frag");
  program_ = glCreateProgram();
  glAttachShader(program_, vertex);
  glAttachShader(program_, fragment);
  glLinkProgram(program_);
  glDeleteShader(vertex);
  glDeleteShader(fragment);
  glGenVertexArrays(1, &vertices_);
  glGenFramebuffers(1, &framebuffer_);
  values_ = Texture::make();
}

Graphics::~Graphics() {
  glDeleteProgram(program_);
  glDeleteVertexArrays(1, &vertices_);
  glDeleteFramebuffers(1, &framebuffer_);
}

const Graphics::Colours& Graphics::colours(ColourMap map, Backdrop backdrop) {
  if (const theme::Mode mode = theme::current_mode(); mode != tables_mode_) {
    tables_ = {};
    tables_mode_ = mode;
  }
  Colours& colours = tables_[static_cast<std::size_t>(map) * backdrops + static_cast<std::size_t>(backdrop)];
  if (colours.texture) return colours;
  colours = {.table = colours_on(theme::ground_of_maps(), map, backdrop), .texture = Texture::make()};
  glBindTexture(GL_TEXTURE_2D, colours.texture.id());
  glPixelStorei(GL_UNPACK_ALIGNMENT, 1);
  glTexImage2D(GL_TEXTURE_2D, 0, GL_RGB8, 256, 1, 0, GL_RGB, GL_UNSIGNED_BYTE, colours.table.data());
  set_filter(GL_LINEAR);
  return colours;
}

Texture Graphics::texture_of(const Pixels& pixels) {
  Texture texture = Texture::make();
  glBindTexture(GL_TEXTURE_2D, texture.id());
  glPixelStorei(GL_UNPACK_ALIGNMENT, 4);
  glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, pixels.width, pixels.height, 0, GL_RGBA, GL_UNSIGNED_BYTE,
               pixels.rgba.data());
  set_filter(GL_LINEAR);
  return texture;
}

void Graphics::bake(const Array& values, const Scale& scale, const Paint& paint, int width, int height,
                    Texture& target) {
  const Texture& table = colours(scale.map, paint.backdrop).texture;
  const auto rows = static_cast<GLsizei>(values.shape[0]);
  const auto columns = static_cast<GLsizei>(values.shape[1]);
  // A new texture for new texels: the damage tracker compares textures by their names.
  Texture fresh = Texture::make();
  glBindTexture(GL_TEXTURE_2D, fresh.id());
  glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, width, height, 0, GL_RGBA, GL_UNSIGNED_BYTE, nullptr);
  set_filter(GL_LINEAR);

  GLint framebuffer = 0;
  std::array<GLint, 4> viewport{};
  glGetIntegerv(GL_FRAMEBUFFER_BINDING, &framebuffer);
  glGetIntegerv(GL_VIEWPORT, viewport.data());
  glBindFramebuffer(GL_FRAMEBUFFER, framebuffer_);
  glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, fresh.id(), 0);
  glViewport(0, 0, width, height);
  glDisable(GL_BLEND);
  glDisable(GL_SCISSOR_TEST);
  glUseProgram(program_);
  glActiveTexture(GL_TEXTURE1);
  glBindTexture(GL_TEXTURE_2D, table.id());
  glActiveTexture(GL_TEXTURE0);
  glBindTexture(GL_TEXTURE_2D, values_.id());
  glPixelStorei(GL_UNPACK_ALIGNMENT, 4);
  glTexImage2D(GL_TEXTURE_2D, 0, GL_R32F, columns, rows, 0, GL_RED, GL_FLOAT, values.values.data());
  set_filter(GL_NEAREST);
  glBindSampler(0, 0);
  glBindSampler(1, 0);
  const auto uniform = [&](const char* name) { return glGetUniformLocation(program_, name); };
  glUniform1i(uniform("values"), 0);
  glUniform1i(uniform("colour_table"), 1);
  glUniform1f(uniform("low"), static_cast<float>(scale.low));
  glUniform1f(uniform("high"), static_cast<float>(scale.high));
  glUniform1i(uniform("logarithmic"), scale.logarithmic ? 1 : 0);
  glUniform1i(uniform("interpolation"), static_cast<GLint>(paint.interpolation));
  glUniform1i(uniform("growing"), paint.backdrop == Backdrop::photograph_by_value ? 1 : 0);
  glUniform1i(uniform("diverging"), is_diverging(scale.map) ? 1 : 0);
  const auto [hatch_ground, hatch_stripe] = theme::hatching(theme::current_mode());
  glUniform2f(uniform("hatching"), hatch_ground, hatch_stripe);
  glUniform1i(uniform("blank"), paint.blank_missing ? 1 : 0);
  glBindVertexArray(vertices_);
  glDrawArrays(GL_TRIANGLES, 0, 3);
  glBindVertexArray(0);
  glUseProgram(0);
  glBindFramebuffer(GL_FRAMEBUFFER, static_cast<GLuint>(framebuffer));
  glViewport(viewport[0], viewport[1], viewport[2], viewport[3]);
  target = std::move(fresh);
}

void MapTexture::set(const Array& values, const Scale& scale, const Graphics::Paint& paint) {
  if (paint == paint_ && same_scale(scale, scale_) && same_values(values, values_)) {
    scale_.label = scale.label;
    scale_.shared = scale.shared;
    return;
  }
  values_ = values;
  scale_ = scale;
  paint_ = paint;
  dirty_ = true;
}

void MapTexture::clear() { *this = {}; }

float MapTexture::value(int row, int column) const {
  if (row < 0 || column < 0 || row >= rows() || column >= columns())
    return std::numeric_limits<float>::quiet_NaN();
  return values_.values[static_cast<std::size_t>(row) * static_cast<std::size_t>(columns()) +
                        static_cast<std::size_t>(column)];
}

void MapTexture::bake(Graphics& graphics, const Baked& request) {
  const bool other_numbers = texture_ && request.numbers != baked_.numbers;
  const bool same_cells = request.rows == baked_.rows && request.columns == baked_.columns;
  if (other_numbers && same_cells && graphics.fades()) {
    std::swap(texture_, previous_);
    faded_since_ = ImGui::GetTime();
  }
  graphics.bake(values_, scale_, paint_, request.width, request.height, texture_);
  baked_ = request;
}

void MapTexture::draw(Graphics& graphics, ImDrawList* list, ImVec2 from, ImVec2 to, float opacity) {
  if (empty()) return;
  const float density = ImGui::GetIO().DisplayFramebufferScale.x;
  const auto texels = [&](float points) {
    return std::clamp(static_cast<int>(std::lround(points * density)), 1, 4096);
  };
  // Crisp maps are baked with one texel per cell and magnified, smooth ones at their size on the screen.
  Baked request{.width = smooth() ? texels(to.x - from.x) : columns(),
                .height = smooth() ? texels(to.y - from.y) : rows(),
                .mode = theme::current_mode(),
                .numbers = dirty_ ? hash_of(values_, scale_, paint_) : baked_.numbers,
                .rows = rows(),
                .columns = columns()};
  if (!texture_ || !(request == baked_)) bake(graphics, request);
  dirty_ = false;

  constexpr double fade_seconds = 0.1;
  const auto share = static_cast<float>((ImGui::GetTime() - faded_since_) / fade_seconds);
  if (!previous_ || share >= 1 || !graphics.fades()) {
    previous_ = Texture();
    add(list, texture_, from, to, opacity);
    return;
  }
  // The opacities of the two layers combine to the map's own, so that the background never shines through.
  const float arriving = opacity * share;
  add(list, previous_, from, to, arriving >= 1 ? 0 : opacity * (1 - share) / (1 - arriving));
  add(list, texture_, from, to, arriving);
  graphics.keep_moving();
}

void MapTexture::add(ImDrawList* list, const Texture& texture, ImVec2 from, ImVec2 to, float opacity) const {
  const float density = ImGui::GetIO().DisplayFramebufferScale.x;
  const bool magnified = (to.x - from.x) * density >= static_cast<float>(baked_.width) &&
                         (to.y - from.y) * density >= static_cast<float>(baked_.height);
  const ImGuiPlatformIO& platform = ImGui::GetPlatformIO();
  // Dear ImGui's OpenGL back end overrides the texture's filter with its own linear sampler.
  if (magnified && !smooth()) list->AddCallback(platform.DrawCallback_SetSamplerNearest, nullptr);
  list->AddImage(texture.reference(), from, to, {0, 0}, {1, 1}, theme::packed(ImVec4{1, 1, 1, 1}, opacity));
  if (magnified && !smooth()) list->AddCallback(platform.DrawCallback_SetSamplerLinear, nullptr);
}

namespace {

// By how much a picture is thinned out to fit into a texture; 1 if it fits.
int step_to_fit(const Image& image) {
  GLint limit = 0;
  glGetIntegerv(GL_MAX_TEXTURE_SIZE, &limit);
  return (std::max(image.width, image.height) + limit - 1) / std::max(limit, 1);
}

// Every n-th pixel.
Image thinned(const Image& image, const int step) {
  Image smaller{std::max(image.width / step, 1), std::max(image.height / step, 1), {}};
  for (int row = 0; row < smaller.height; ++row) {
    for (int column = 0; column < smaller.width; ++column) {
      const auto from = (static_cast<std::ptrdiff_t>(row) * step * image.width +
                         static_cast<std::ptrdiff_t>(column) * step) *
                        3;
      smaller.rgb.insert(smaller.rgb.end(), image.rgb.begin() + from, image.rgb.begin() + from + 3);
    }
  }
  return smaller;
}

// The next mipmap level: means of two by two pixels.
Image halved(const Image& image) {
  Image half{std::max(image.width / 2, 1), std::max(image.height / 2, 1), {}};
  half.rgb.resize(static_cast<std::size_t>(half.width) * static_cast<std::size_t>(half.height) * 3);
  const std::ptrdiff_t line = std::ptrdiff_t{3} * image.width, right = image.width > 1 ? 3 : 0,
                       below = image.height > 1 ? line : 0;
  auto* to = half.rgb.data();
  for (std::ptrdiff_t row = 0; row < half.height; ++row) {
    const std::uint8_t* from = image.rgb.data() + 2 * row * line;
    for (int column = 0; column < half.width; ++column, from += 6)
      for (int channel = 0; channel < 3; ++channel)
        *to++ = static_cast<std::uint8_t>((from[channel] + from[channel + right] + from[channel + below] +
                                           from[channel + right + below] + 2) /
                                          4);
  }
  return half;
}

void upload(const int level, const Image& image) {
  glTexImage2D(GL_TEXTURE_2D, level, GL_RGB8, image.width, image.height, 0, GL_RGB, GL_UNSIGNED_BYTE,
               image.rgb.data());
}

Texture uploaded(const Image& image) {
  Texture texture = Texture::make();
  glBindTexture(GL_TEXTURE_2D, texture.id());
  glPixelStorei(GL_UNPACK_ALIGNMENT, 1);
  set_filter(GL_LINEAR);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_LINEAR_MIPMAP_LINEAR);
  const int step = step_to_fit(image);
  Image smaller = step > 1 ? thinned(image, step) : Image();
  const Image* shown = step > 1 ? &smaller : &image;
  upload(0, *shown);
  // Not by glGenerateMipmap(): OpenGL in software compiles a shader for it, which takes 65 ms
  // of the first frame.
  for (int level = 1; shown->width > 1 || shown->height > 1; ++level) {
    smaller = halved(*shown);
    shown = &smaller;
    upload(level, smaller);
  }
  return texture;
}

} // namespace

void Graphics::draw_picture(ImDrawList* list, const std::shared_ptr<const Image>& image, ImVec2 from,
                            ImVec2 to, float opacity) {
  if (!image || image->width <= 0 || image->height <= 0) return;
  const int frame = ImGui::GetFrameCount();
  auto picture =
      std::ranges::find_if(pictures_, [&](const Picture& one) { return one.image.lock() == image; });
  if (picture == pictures_.end()) {
    std::erase_if(pictures_, [&](const Picture& one) { return one.frame < frame - 1; });
    pictures_.push_back({.image = image, .texture = uploaded(*image), .frame = frame});
    picture = pictures_.end() - 1;
  }
  picture->frame = frame;
  // The back end's own sampler uses no mipmaps, without which a minified photograph flickers.
  const ImGuiPlatformIO& platform = ImGui::GetPlatformIO();
  list->AddCallback(platform.DrawCallback_SetSamplerFromTex, nullptr);
  list->AddImage(picture->texture.reference(), from, to, {0, 0}, {1, 1},
                 theme::packed(ImVec4{1, 1, 1, 1}, opacity));
  list->AddCallback(platform.DrawCallback_SetSamplerLinear, nullptr);
}

} // namespace hydrascope::app
