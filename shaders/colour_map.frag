#version 330 core
// Values to colours. The interpolation is done on values, not on colours, so that a smooth map has only colours that its
// colour bar has.
in vec2 position01;
out vec4 colour;

uniform sampler2D values;       // R32F, one texel a cell, first row at the bottom of the texture
uniform sampler2D colour_table; // RGBA8, 256 x 1
uniform float low;
uniform float high;
uniform bool logarithmic;
uniform bool smooth_values; // bilinear instead of crisp cells
uniform vec2 hatching;      // greys of a masked cell: ground and stripe

float cell(ivec2 at, ivec2 size) {
  return texelFetch(values, clamp(at, ivec2(0), size - 1), 0).r;
}

float value_at(vec2 where, ivec2 size) {
  vec2 at = where * vec2(size);
  if (!smooth_values) return cell(ivec2(floor(at)), size);
  vec2 base = floor(at - 0.5);
  vec2 part = at - 0.5 - base;
  ivec2 corner = ivec2(base);
  float lower = mix(cell(corner, size), cell(corner + ivec2(1, 0), size), part.x);
  float upper = mix(cell(corner + ivec2(0, 1), size), cell(corner + ivec2(1, 1), size), part.x);
  return mix(lower, upper, part.y);
}

void main() {
  ivec2 size = textureSize(values, 0);
  float value = value_at(position01, size);
  if (isnan(value)) { // masked: hatched, never zero-coloured
    float stripe = mod(gl_FragCoord.x + gl_FragCoord.y, 6.0) < 2.0 ? hatching.y : hatching.x;
    colour = vec4(vec3(stripe), 1.0);
    return;
  }
  float share;
  if (high <= low) {
    share = value >= high && high > 0.0 ? 1.0 : 0.0;
  } else if (logarithmic) {
    share = value <= 0.0 || low <= 0.0 ? 0.0 : (log(value) - log(low)) / (log(high) - log(low));
  } else {
    share = (value - low) / (high - low);
  }
  share = clamp(share, 0.0, 1.0);
  colour = vec4(texelFetch(colour_table, ivec2(int(share * 255.0 + 0.5), 0), 0).rgb, 1.0);
}
